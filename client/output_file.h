// A file that appears whole or not at all.
#ifndef NORMLAB_CLIENT_OUTPUT_FILE_H_
#define NORMLAB_CLIENT_OUTPUT_FILE_H_

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace normlab::client {

// Writes beside `path` and takes its place on Commit; without one, nothing is left behind.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(std::string_view bytes) { stream_.write(bytes.data(), bytes.size()); }
  // FAILED_PRECONDITION with the path and the reason when anything went wrong since the start.
  absl::Status Commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path partial_;
  std::ofstream stream_;
  bool committed_ = false;
};

absl::Status WriteFile(const std::filesystem::path& path, std::string_view bytes);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_OUTPUT_FILE_H_
