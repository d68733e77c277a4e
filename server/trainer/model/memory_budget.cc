#include "server/trainer/model/memory_budget.h"

namespace normlab::trainer {
namespace {

std::string MiB(size_t bytes) {
  return std::to_string((bytes + (size_t{1} << 20) - 1) >> 20) + " MiB";
}

}  // namespace

bool MemoryBudget::Allows(size_t more) const {
  return bytes_ == 0 || context_ + held_ + more <= bytes_;
}

std::string MemoryBudget::Refusal(size_t asked, const DeviceMemory& device) const {
  const std::string budget = bytes_ == 0
                                 ? "the whole GPU"
                                 : MiB(bytes_) + ", " + MiB(context_) + " of them for CUDA itself";
  const std::string remedy =
      bytes_ == 0 ? "make batch_size or the model smaller"
      : Allows(asked)
          ? "others hold what is missing: try again when they have ended, or ask for it alone "
            "(--exclusive)"
          : "give it more (--gpu-memory), or make batch_size or the model smaller";
  return "out of GPU memory: asked for " + MiB(asked) + ", held " + MiB(held_) +
         ", its budget is " + budget + "; the GPU has " + MiB(device.free) + " of " +
         MiB(device.total) + " free; " + remedy;
}

}  // namespace normlab::trainer
