// A private folder that goes with the test.
#ifndef NORMLAB_TESTS_FAKES_TEMP_DIR_H_
#define NORMLAB_TESTS_FAKES_TEMP_DIR_H_

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace normlab::fakes {

class TempDir {
 public:
  TempDir() {
    std::string name = std::filesystem::temp_directory_path() / "normlab-test-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace normlab::fakes

#endif  // NORMLAB_TESTS_FAKES_TEMP_DIR_H_
