#include "server/storage/log_readers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>
#include <sstream>

#include "server/base/files.h"
#include "server/base/strings.h"

namespace normlab::storage {
namespace {

// Bytes of the -shm file that SQLite locks: five read marks, one of which each reader shares, and
// the one that every connection shares as long as it is open.
constexpr int64_t kFirstReadMark = 123;
constexpr int64_t kLastReadMark = 127;
constexpr int64_t kConnected = 128;

struct Lock {
  int64_t pid = 0;
  std::string device;  // "fe:00"
  uint64_t inode = 0;
  int64_t first = 0;
  int64_t last = 0;  // byte, inclusive
};

// "7: POSIX  ADVISORY  READ 4711 fe:00:2154749 124 124"; one that waits has "->" behind its number.
std::optional<Lock> ParseLock(const std::string& line) {
  std::istringstream words(line);
  std::string number, kind, advisory, access, file, first, last;
  Lock lock;
  if (!(words >> number >> kind >> advisory >> access >> lock.pid >> file >> first >> last) ||
      kind != "POSIX") {
    return std::nullopt;
  }
  const size_t colon = file.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  lock.device = file.substr(0, colon);
  std::istringstream numbers(file.substr(colon + 1) + " " + first);
  if (!(numbers >> lock.inode >> lock.first)) return std::nullopt;
  lock.last = std::numeric_limits<int64_t>::max();
  if (last != "EOF" && !(std::istringstream(last) >> lock.last)) return std::nullopt;
  return lock;
}

std::string CommandOf(int64_t pid) {
  absl::StatusOr<std::string> name = ReadFile(StrCat("/proc/", pid, "/comm"));
  if (!name.ok()) return "";
  if (name->ends_with('\n')) name->pop_back();
  return *std::move(name);
}

}  // namespace

std::vector<int64_t> PidsWithReadMarks(std::string_view locks, uint64_t inode, int64_t own) {
  std::vector<Lock> of_file;
  // Inodes of different disks may have one number, and what stat() calls the disk is not always
  // what is written here: our own connection's lock shows which one is meant.
  std::string device;
  std::istringstream lines{std::string(locks)};
  for (std::string line; std::getline(lines, line);) {
    const std::optional<Lock> lock = ParseLock(line);
    if (!lock || lock->inode != inode) continue;
    if (lock->pid == own && lock->first <= kConnected && lock->last >= kConnected) {
      device = lock->device;
    }
    of_file.push_back(*lock);
  }
  std::vector<int64_t> pids;
  for (const Lock& lock : of_file) {
    const bool reads = lock.first <= kLastReadMark && lock.last >= kFirstReadMark;
    if (!reads || lock.pid == own || (!device.empty() && lock.device != device)) continue;
    if (std::find(pids.begin(), pids.end(), lock.pid) == pids.end()) pids.push_back(lock.pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

absl::StatusOr<std::vector<LogReader>> ForeignLogReaders(const std::filesystem::path& shm) {
  struct stat info {};
  if (stat(shm.c_str(), &info) != 0) {
    return absl::ErrnoToStatus(errno, StrCat("cannot look at ", shm.string()));
  }
  const absl::StatusOr<std::string> locks = ReadFile("/proc/locks");
  if (!locks.ok()) return locks.status();
  std::vector<LogReader> readers;
  for (const int64_t pid : PidsWithReadMarks(*locks, info.st_ino, getpid())) {
    readers.push_back({pid, CommandOf(pid)});
  }
  return readers;
}

}  // namespace normlab::storage
