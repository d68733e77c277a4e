#include "server/storage/store.h"

#include <utility>

#include "server/base/strings.h"
#include "server/base/files.h"
#include "server/base/ids.h"
#include "server/storage/migrations.h"
#include "server/storage/runs.h"

namespace normlab::storage {
namespace {

constexpr size_t kIdleReaders = 4;
constexpr int kStoreIdBytes = 6;

absl::Status CheckPlace(const std::filesystem::path& path) {
  if (OnNetworkFileSystem(path.parent_path())) {
    return absl::FailedPreconditionError(StrCat(
        path.parent_path().string(),
        " is on a network file system, where the database cannot be kept safely; choose a local "
        "folder with --data-dir"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> StoreId(Database& database) {
  Statement select = database.Prepared("SELECT value FROM meta WHERE name = 'store_id'");
  if (select.Step()) return select.Text(0);
  if (!select.status().ok()) return select.status();
  const std::string id = RandomHex(kStoreIdBytes);
  Statement insert = database.Prepared(
      "INSERT INTO meta (name, value) VALUES ('store_id', ?1), ('sequence', 0)");
  insert.Bind(1, id);
  if (absl::Status status = insert.Run(); !status.ok()) return status;
  return id;
}

}  // namespace

Store::Store(Options options) : options_(std::move(options)), attempt_log_(*options_.clock) {}

Store::~Store() {
  if (writer_) writer_->Stop();
  {
    // Readers go first: the last connection to close folds the WAL into the database, and only the
    // writer's may.
    MutexLock lock(mutex_);
    idle_readers_.clear();
  }
  writer_.reset();
}

absl::StatusOr<std::unique_ptr<Store>> Store::Open(Options options) {
  if (absl::Status status = CheckPlace(options.path); !status.ok()) return status;
  std::unique_ptr<Store> store(new Store(std::move(options)));
  if (absl::Status status = store->Start(); !status.ok()) {
    return absl::Status(status.code(), StrCat(store->options_.path.string(), ": ",
                                                    status.message()));
  }
  return store;
}

absl::Status Store::Start() {
  absl::StatusOr<std::unique_ptr<Database>> database =
      Database::Open(options_.path, Database::Access::kReadWrite);
  if (!database.ok()) return database.status();
  if (absl::Status status = Migrate(**database); !status.ok()) return status;
  absl::StatusOr<std::string> id = StoreId(**database);
  if (!id.ok()) return id.status();
  store_id_ = *std::move(id);
  absl::StatusOr<uint64_t> sequence = ReadSequence(**database);
  if (!sequence.ok()) return sequence.status();
  opened_at_sequence_ = *sequence;
  Writer::Options writer_options;
  writer_options.publish = options_.publish;
  writer_options.clock = options_.clock;
  writer_options.on_rollback = [this] { attempt_log_.Forget(); };
  writer_ = std::make_unique<Writer>(*std::move(database), *sequence, std::move(writer_options));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Database>> Store::TakeReader() {
  {
    MutexLock lock(mutex_);
    if (!idle_readers_.empty()) {
      std::unique_ptr<Database> reader = std::move(idle_readers_.back());
      idle_readers_.pop_back();
      return reader;
    }
  }
  return Database::Open(options_.path, Database::Access::kReadOnly);
}

absl::Status Store::Read(const std::function<absl::Status(Database&)>& work) {
  absl::StatusOr<std::unique_ptr<Database>> reader = TakeReader();
  if (!reader.ok()) return reader.status();
  absl::Status status;
  {
    Transaction transaction(**reader, Transaction::Kind::kRead);
    status = transaction.status().ok() ? work(**reader) : transaction.status();
  }
  MutexLock lock(mutex_);
  if (idle_readers_.size() < kIdleReaders) idle_readers_.push_back(*std::move(reader));
  return status;
}

}  // namespace normlab::storage
