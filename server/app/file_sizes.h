// Sizes of files and disks, for numbers that people look at: 0 where they cannot be had.
#ifndef NORMLAB_SERVER_APP_FILE_SIZES_H_
#define NORMLAB_SERVER_APP_FILE_SIZES_H_

#include <cstdint>
#include <filesystem>
#include <system_error>

namespace normlab::app {

inline int64_t FileBytes(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

inline int64_t FreeBytes(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  return error ? 0 : static_cast<int64_t>(space.available);
}

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_FILE_SIZES_H_
