// A copy of a database that goes on being written, made a few pages at a time.
#ifndef NORMLAB_SERVER_STORAGE_PAGE_COPY_H_
#define NORMLAB_SERVER_STORAGE_PAGE_COPY_H_

#include <cstdint>
#include <filesystem>
#include <memory>

#include "absl/status/statusor.h"
#include "server/storage/sqlite.h"

struct sqlite3;
struct sqlite3_backup;

namespace normlab::storage {

// Writes made through `source` while copying go into both, so that copying never starts over and
// the copy is the database as it is at the last step. Everything on the thread of `source`, which
// must be the only connection that writes, and outside its transactions.
class PageCopy {
 public:
  // Begins a new file at `path`, 0600.
  static absl::StatusOr<std::unique_ptr<PageCopy>> Start(Database& source,
                                                         const std::filesystem::path& path);
  ~PageCopy();
  PageCopy(const PageCopy&) = delete;
  PageCopy& operator=(const PageCopy&) = delete;

  // Copies so many more pages. True when that was all; then the file is a database, not yet synced.
  absl::StatusOr<bool> Step(int pages);

  // As of the latest step. The total grows with the database.
  int64_t total_pages() const;
  int64_t copied_pages() const;

 private:
  explicit PageCopy(sqlite3* target) : target_(target) {}

  sqlite3* const target_;
  sqlite3_backup* backup_ = nullptr;
};

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_PAGE_COPY_H_
