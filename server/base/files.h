// Small files, written so that a reader sees the old content or the new, and never too openly.
#ifndef NORMLAB_SERVER_BASE_FILES_H_
#define NORMLAB_SERVER_BASE_FILES_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace normlab {

// The whole content. NOT_FOUND when there is no such file.
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path);

// Whether a file must be there after the machine went down. Waiting for the disk takes milliseconds.
enum class Durability { kSynced, kUntilReboot };

// Replaces `path` by a 0600 file with `content`: written beside it, synced, renamed.
absl::Status WritePrivateFile(const std::filesystem::path& path, std::string_view content,
                              Durability durability = Durability::kSynced);

// Makes `path` (and its parents) if missing. The folder itself must be ours and closed to others
// (0700); anything else is FAILED_PRECONDITION with the command that puts it right.
absl::Status MakePrivateDirectory(const std::filesystem::path& path);

// Holds an exclusive lock on a file as long as it lives.
class FileLock {
 public:
  FileLock() = default;
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;

  // Takes the lock and writes this process's id into the file. FAILED_PRECONDITION, naming the
  // holder's process id, when somebody else has it: at once, unless that process is no more. Then a
  // child that it was just starting may have it until it runs its own program, which is waited for.
  static absl::StatusOr<FileLock> Take(const std::filesystem::path& path);

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

// True when `path` lies on a file system shared over a network, where SQLite's WAL cannot work.
bool OnNetworkFileSystem(const std::filesystem::path& path);
// The same of the number by which the kernel knows a kind of file system (statfs: f_type).
bool IsNetworkFileSystem(uint32_t type);

}  // namespace normlab

#endif  // NORMLAB_SERVER_BASE_FILES_H_
