#include "server/trainer/train/threads.h"

#include <ATen/Parallel.h>
#include <torch/version.h>

#include <mutex>
#include <string_view>

#include "server/trainer/trainer.h"

namespace normlab::trainer {

void SetThreads(int64_t threads) {
  static std::once_flag interop_threads;
  std::call_once(interop_threads, [] {
    // Can be set only before the first use, which another part of the process may have had.
    if (at::get_num_interop_threads() != 1) at::set_num_interop_threads(1);
  });
  at::set_num_threads(static_cast<int>(threads));
}

void RunOnThreads(int64_t count, const std::function<void(int64_t)>& work) {
  if (count == 1) return work(0);
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) work(i);
  });
}

std::string_view EngineVersion() { return TORCH_VERSION; }

}  // namespace normlab::trainer
