// The part of the api that looks after the database.
#include <string>
#include <utility>

#include "server/app/file_sizes.h"
#include "server/app/requests.h"
#include "server/app/server_api.h"
#include "server/base/strings.h"
#include "server/storage/audit.h"

namespace normlab::app {
namespace {

absl::Status MayCareForStorage(const Principal& principal) {
  return MustBeAdmin(principal, "may copy, check or compact the database");
}

}  // namespace

absl::StatusOr<v1::Storage> ServerApi::GetStorage(const Principal&) {
  v1::Storage storage;
  storage.set_data_directory(parts_.data_dir.string());
  storage.set_database_bytes(FileBytes(parts_.store.path()));
  storage.set_log_bytes(FileBytes(StrCat(parts_.store.path().string(), "-wal")));
  storage.set_free_bytes(FreeBytes(parts_.data_dir));
  for (std::string& problem : Problems()) storage.add_problems(std::move(problem));
  absl::Status status = parts_.store.Read([&](storage::Database& database) -> absl::Status {
    const absl::StatusOr<int64_t> page = database.PragmaInteger("page_size");
    const absl::StatusOr<int64_t> unused = database.PragmaInteger("freelist_count");
    const absl::StatusOr<int64_t> schema = database.PragmaInteger("user_version");
    for (const absl::Status& read : {page.status(), unused.status(), schema.status()}) {
      if (!read.ok()) return read;
    }
    storage.set_unused_bytes(*page * *unused);
    storage.set_schema(static_cast<int32_t>(*schema));
    storage::Statement count = database.Prepared("SELECT count(*) FROM runs");
    if (count.Step()) storage.set_runs(count.Integer(0));
    return count.status();
  });
  if (!status.ok()) return status;
  return storage;
}

// Before the task, for which there is no transaction: that somebody wanted a copy is known,
// whatever became of it.
absl::Status ServerApi::AuditStorageTask(const Principal& principal, std::string_view action) {
  if (absl::Status allowed = MayCareForStorage(principal); !allowed.ok()) return allowed;
  return parts_.store.writer().Write([&](storage::WriteContext& context) {
    return storage::WriteAudit(context, principal.actor(), {std::string(action)});
  });
}

void ServerApi::Backup(const Principal& principal, TellBackup tell, TaskDone done) {
  const absl::Status noted = AuditStorageTask(principal, "back up");
  if (!noted.ok()) return done(noted);
  parts_.storage_tasks.Backup(std::move(tell), std::move(done));
}

void ServerApi::CheckStorage(const Principal& principal, TellCheck tell, TaskDone done) {
  const absl::Status noted = AuditStorageTask(principal, "check storage");
  if (!noted.ok()) return done(noted);
  parts_.storage_tasks.Check(std::move(tell), std::move(done));
}

void ServerApi::CompactStorage(const Principal& principal, TellCompact tell, TaskDone done) {
  const absl::Status noted = AuditStorageTask(principal, "compact storage");
  if (!noted.ok()) return done(noted);
  parts_.storage_tasks.Compact(std::move(tell), std::move(done));
}

}  // namespace normlab::app
