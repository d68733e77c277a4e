#include "client/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace normlab::client {

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)) {
  partial_ = path_;
  partial_ += fmt::format(".{}.part", ::getpid());
  stream_.open(partial_, std::ios::binary | std::ios::trunc);
}

OutputFile::~OutputFile() {
  if (committed_) return;
  stream_.close();
  std::error_code ignored;
  std::filesystem::remove(partial_, ignored);
}

absl::Status OutputFile::Commit() {
  errno = 0;
  stream_.close();
  const int error = errno;
  if (!stream_) {
    return absl::FailedPreconditionError(fmt::format("cannot write {}{}{}", path_.string(),
                                                     error != 0 ? ": " : "",
                                                     error != 0 ? std::strerror(error) : ""));
  }
  std::error_code failure;
  std::filesystem::rename(partial_, path_, failure);
  if (failure) {
    return absl::FailedPreconditionError(
        fmt::format("cannot write {}: {}", path_.string(), failure.message()));
  }
  committed_ = true;
  return absl::OkStatus();
}

absl::Status WriteFile(const std::filesystem::path& path, std::string_view bytes) {
  OutputFile file(path);
  file.Write(bytes);
  return file.Commit();
}

}  // namespace normlab::client
