// A large file for its owner only, which appears whole, synced, or not at all.
#ifndef NORMLAB_CLIENT_PRIVATE_FILE_H_
#define NORMLAB_CLIENT_PRIVATE_FILE_H_

#include <filesystem>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace normlab::client {

class PrivateFile {
 public:
  // Begins a 0600 file beside `path`. ALREADY_EXISTS when there is something at `path`, unless it
  // may be replaced.
  static absl::StatusOr<std::unique_ptr<PrivateFile>> Create(const std::filesystem::path& path,
                                                             bool replace);
  // Without a Commit nothing is left behind.
  ~PrivateFile();
  PrivateFile(const PrivateFile&) = delete;
  PrivateFile& operator=(const PrivateFile&) = delete;

  absl::Status Write(std::string_view bytes);
  // Synced and in its place. What came there meanwhile is kept, and this is ALREADY_EXISTS.
  absl::Status Commit();

 private:
  PrivateFile(std::filesystem::path path, bool replace);

  const std::filesystem::path path_;
  const bool replace_;
  std::filesystem::path partial_;
  int fd_ = -1;
};

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_PRIVATE_FILE_H_
