#include "client/private_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace normlab::client {
namespace {

absl::Status CannotWrite(const std::filesystem::path& path) {
  return absl::FailedPreconditionError(
      fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
}

absl::Status IsThere(const std::filesystem::path& path) {
  return absl::AlreadyExistsError(
      fmt::format("{} is there already; --force replaces it", path.string()));
}

}  // namespace

PrivateFile::PrivateFile(std::filesystem::path path, bool replace)
    : path_(std::move(path)), replace_(replace), partial_(path_) {
  partial_ += fmt::format(".{}.part", ::getpid());
}

PrivateFile::~PrivateFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(partial_.c_str());
}

absl::StatusOr<std::unique_ptr<PrivateFile>> PrivateFile::Create(const std::filesystem::path& path,
                                                                 bool replace) {
  if (!replace && ::access(path.c_str(), F_OK) == 0) return IsThere(path);
  std::unique_ptr<PrivateFile> file(new PrivateFile(path, replace));
  file->fd_ = ::open(file->partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file->fd_ < 0) return CannotWrite(path);
  return file;
}

absl::Status PrivateFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return CannotWrite(path_);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status PrivateFile::Commit() {
  if (::fsync(fd_) != 0) return CannotWrite(path_);
  // A link, unlike a rename, takes nobody's place.
  if (replace_ ? ::rename(partial_.c_str(), path_.c_str()) != 0
               : ::link(partial_.c_str(), path_.c_str()) != 0) {
    return errno == EEXIST ? IsThere(path_) : CannotWrite(path_);
  }
  if (!replace_) ::unlink(partial_.c_str());
  ::close(std::exchange(fd_, -1));
  const std::filesystem::path folder = path_.parent_path().empty() ? "." : path_.parent_path();
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = directory >= 0 && ::fsync(directory) == 0;
  if (directory >= 0) ::close(directory);
  return synced ? absl::OkStatus() : CannotWrite(path_);
}

}  // namespace normlab::client
