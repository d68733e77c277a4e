// What a run holds of its GPU's memory, against what it may hold. Plain arithmetic and the words of
// a refusal; Device counts with it.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_MEMORY_BUDGET_H_
#define NORMLAB_SERVER_TRAINER_MODEL_MEMORY_BUDGET_H_

#include <cstddef>
#include <string>

namespace normlab::trainer {

// Of a whole device, whoever uses it; bytes.
struct DeviceMemory {
  size_t free = 0;
  size_t total = 0;
};

class MemoryBudget {
 public:
  // At most `bytes`, `context` of them for what CUDA itself takes; 0 bytes, as at first, are no
  // limit. What is held already counts.
  void Limit(size_t bytes, size_t context) {
    bytes_ = bytes;
    context_ = context;
  }

  bool Allows(size_t more) const;
  void Take(size_t bytes) { held_ += bytes; }
  void Return(size_t bytes) { held_ -= bytes; }
  size_t held() const { return held_; }

  // Why `asked` cannot be had, with every size, and what to do about it.
  std::string Refusal(size_t asked, const DeviceMemory& device) const;

 private:
  size_t bytes_ = 0;
  size_t context_ = 0;
  size_t held_ = 0;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_MEMORY_BUDGET_H_
