#include "server/storage/page_copy.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>

#include "server/base/strings.h"

namespace normlab::storage {
namespace {

absl::Status CopyError(const std::filesystem::path& path, const char* why, int code) {
  const std::string text = StrCat("cannot copy the database to ", path.string(), ": ", why);
  return (code & 0xFF) == SQLITE_FULL ? absl::ResourceExhaustedError(text)
                                      : absl::InternalError(text);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PageCopy>> PageCopy::Start(Database& source,
                                                          const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, StrCat("cannot create ", path.string()));
  close(fd);
  sqlite3* target = nullptr;
  int code =
      sqlite3_open_v2(path.c_str(), &target, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<PageCopy> copy(new PageCopy(target));
  if (code != SQLITE_OK) return CopyError(path, sqlite3_errstr(code), code);
  // A copy that is broken off is thrown away: nothing is to be undone, nor synced before its end.
  code = sqlite3_exec(target,
                      "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF;"
                      "PRAGMA synchronous = OFF; PRAGMA cache_size = -1024;",
                      nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return CopyError(path, sqlite3_errmsg(target), code);
  copy->backup_ = sqlite3_backup_init(target, "main", source.connection_, "main");
  if (copy->backup_ == nullptr) {
    return CopyError(path, sqlite3_errmsg(target), sqlite3_errcode(target));
  }
  return copy;
}

PageCopy::~PageCopy() {
  if (backup_ != nullptr) sqlite3_backup_finish(backup_);
  sqlite3_close(target_);
}

absl::StatusOr<bool> PageCopy::Step(int pages) {
  const int code = sqlite3_backup_step(backup_, pages);
  if (code == SQLITE_DONE) return true;
  if (code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED) return false;
  return CopyError(sqlite3_db_filename(target_, "main"), sqlite3_errstr(code), code);
}

int64_t PageCopy::total_pages() const { return sqlite3_backup_pagecount(backup_); }

int64_t PageCopy::copied_pages() const { return total_pages() - sqlite3_backup_remaining(backup_); }

}  // namespace normlab::storage
