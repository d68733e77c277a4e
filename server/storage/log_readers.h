// Who else reads a database just now, by the locks that SQLite's readers hold.
#ifndef NORMLAB_SERVER_STORAGE_LOG_READERS_H_
#define NORMLAB_SERVER_STORAGE_LOG_READERS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace normlab::storage {

struct LogReader {
  int64_t pid = 0;
  std::string command;  // as /proc calls it; empty when that is hidden from us
};

// Processes other than this one inside a read transaction on the database whose WAL index is `shm`
// (its -shm file). Processes of other containers cannot be seen. Linux's /proc/locks.
absl::StatusOr<std::vector<LogReader>> ForeignLogReaders(const std::filesystem::path& shm);

// The part of the above that reads text: pids other than `own` that hold a read mark of the file
// with this inode number in `locks`, the content of /proc/locks.
std::vector<int64_t> PidsWithReadMarks(std::string_view locks, uint64_t inode, int64_t own);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_LOG_READERS_H_
