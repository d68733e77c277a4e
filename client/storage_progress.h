// Long work on the server's database, shown while it goes on.
#ifndef NORMLAB_CLIENT_STORAGE_PROGRESS_H_
#define NORMLAB_CLIENT_STORAGE_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "client/context.h"
#include "normlab/v1/storage_service.pb.h"

namespace normlab::client {

// A line on a terminal that is redrawn in place, with the time left once it can be told; nothing
// elsewhere. One thread.
class StorageProgressLine {
 public:
  explicit StorageProgressLine(Context& context) : context_(context) {}
  ~StorageProgressLine() { Clear(); }
  StorageProgressLine(const StorageProgressLine&) = delete;
  StorageProgressLine& operator=(const StorageProgressLine&) = delete;

  void Show(const normlab::v1::StorageProgress& progress);
  void Clear();

 private:
  Context& context_;
  std::string stage_;
  std::chrono::steady_clock::time_point stage_start_{};
  int64_t stage_first_ = 0;
};

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_STORAGE_PROGRESS_H_
