#include "server/base/files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "server/base/strings.h"

namespace normlab {
namespace {

// That a child may keep the lock of a process that is no more: hardly any time, but on a busy
// machine.
constexpr std::chrono::seconds kDyingHolder(5);

bool IsGone(const std::string& pid) {
  pid_t number = 0;
  return absl::SimpleAtoi(pid, &number) && number > 0 && kill(number, 0) != 0 && errno == ESRCH;
}

absl::Status FromErrno(std::string_view what, const std::filesystem::path& path) {
  const int error = errno;
  return absl::ErrnoToStatus(error, StrCat(what, " ", path.string()));
}

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

absl::Status WriteAll(int fd, std::string_view content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FromErrno("cannot write", path);
    content.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status SyncDirectory(const std::filesystem::path& directory) {
  Fd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || fsync(fd.get()) != 0) return FromErrno("cannot sync", directory);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return FromErrno("cannot open", path);
  std::string content;
  char buffer[16384];
  while (true) {
    const ssize_t got = read(fd.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FromErrno("cannot read", path);
    if (got == 0) return content;
    content.append(buffer, static_cast<size_t>(got));
  }
}

absl::Status WritePrivateFile(const std::filesystem::path& path, std::string_view content,
                              Durability durability) {
  const bool synced = durability == Durability::kSynced;
  const std::filesystem::path temporary = StrCat(path.string(), ".", getpid(), ".tmp");
  unlink(temporary.c_str());
  {
    Fd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (fd.get() < 0) return FromErrno("cannot create", temporary);
    if (absl::Status status = WriteAll(fd.get(), content, temporary); !status.ok()) return status;
    if (synced && fsync(fd.get()) != 0) return FromErrno("cannot sync", temporary);
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) return FromErrno("cannot replace", path);
  return synced ? SyncDirectory(path.parent_path()) : absl::OkStatus();
}

absl::Status MakePrivateDirectory(const std::filesystem::path& path) {
  std::error_code error;
  if (!path.parent_path().empty()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) {
    return absl::FailedPreconditionError(
        StrCat("cannot create ", path.parent_path().string(), ": ", error.message()));
  }
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return FromErrno("cannot create", path);
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return FromErrno("cannot look at", path);
  if (!S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(StrCat(path.string(), " is not a folder"));
  }
  if (info.st_uid != geteuid()) {
    return absl::FailedPreconditionError(
        StrCat(path.string(), " belongs to another user (uid ", info.st_uid, ")"));
  }
  if ((info.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(
        StrCat(path.string(), " is open to other users; close it with: chmod 700 ", path.string()));
  }
  return absl::OkStatus();
}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

absl::StatusOr<FileLock> FileLock::Take(const std::filesystem::path& path) {
  FileLock lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.fd_ < 0) return FromErrno("cannot open", path);
  const auto deadline = std::chrono::steady_clock::now() + kDyingHolder;
  while (flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return FromErrno("cannot lock", path);
    const absl::StatusOr<std::string> holder = ReadFile(path);
    if (!holder.ok() || !IsGone(*holder) || std::chrono::steady_clock::now() >= deadline) {
      return absl::FailedPreconditionError(
          StrCat(path.parent_path().string(), " is in use by process ",
                 holder.ok() && !holder->empty() ? *holder : "(unknown)"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (ftruncate(lock.fd_, 0) != 0) return FromErrno("cannot write", path);
  if (absl::Status status = WriteAll(lock.fd_, StrCat(getpid()), path); !status.ok()) {
    return status;
  }
  return lock;
}

bool OnNetworkFileSystem(const std::filesystem::path& path) {
  struct statfs info;
  return statfs(path.c_str(), &info) == 0 &&
         IsNetworkFileSystem(static_cast<uint32_t>(info.f_type));
}

bool IsNetworkFileSystem(uint32_t type) {
  switch (type) {
    case NFS_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case 0xFF534D42:  // CIFS
    case 0xFE534D42:  // SMB2
    case V9FS_MAGIC:
    case CEPH_SUPER_MAGIC:
    case AFS_SUPER_MAGIC:
    case 0x0BD00BD0:  // Lustre
      return true;
    default:
      return false;
  }
}

}  // namespace normlab
