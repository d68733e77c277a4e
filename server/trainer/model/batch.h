// What one step of training is computed from.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_BATCH_H_
#define NORMLAB_SERVER_TRAINER_MODEL_BATCH_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace normlab::trainer {

// A target that does not count in the loss.
constexpr int32_t kIgnored = -1;

// Sequences in rows: [batch, time] each, unless said otherwise. What a model does not read stays
// empty.
struct Batch {
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;         // the tokens to be predicted, or kIgnored
  std::vector<int32_t> source;          // encoder-decoder: what the encoder reads
  std::vector<int32_t> source_lengths;  // [batch]; positions of `source` beyond it are padding
  std::vector<float> inputs;            // [batch, time, d_model]: numbers instead of tokens
};

// How many of its targets count.
inline int64_t CountedTargets(const Batch& batch) {
  return std::ranges::count_if(batch.targets, [](int32_t target) { return target != kIgnored; });
}

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_BATCH_H_
