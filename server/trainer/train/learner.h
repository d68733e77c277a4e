// One model being trained: its weights, gradients, optimiser and one program for each thread.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_LEARNER_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_LEARNER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "server/trainer/model/buffer.h"
#include "server/trainer/model/parameters.h"
#include "server/trainer/model/program.h"
#include "server/trainer/train/optimizer.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

// Splits each batch between `settings.threads` threads by sequences; every thread goes forward and
// back through the whole model, then the gradients are added in thread order. The same thread count
// on the same instruction set gives the same bits. Not thread-safe.
class Learner {
 public:
  // `settings` must outlive the learner. Throws std::runtime_error for settings it cannot train.
  explicit Learner(const TrainingSettings& settings);

  const ParameterTable& parameters() const { return parameters_; }
  std::span<float> weights() { return weights_.span(); }
  std::span<const float> gradients() const { return shares_[0].gradients.span(); }

  // Forward and backward over one batch, [batch, time] each. Returns the mean cross-entropy.
  double ComputeGradients(std::span<const int32_t> tokens, std::span<const int32_t> targets);

  // The Euclidean norm of all gradients, before any clipping. Infinite if one is and none is NaN.
  double GradientNorm();

  // Gradients that are infinite or NaN.
  int64_t NonFiniteCount() const;

  // The optimiser's step number `step`, from 1.
  void Update(int64_t step, double learning_rate);

 private:
  // What one thread works with.
  struct Share {
    int64_t first_row = 0;  // of the batch, in tokens
    std::unique_ptr<Program> program;
    Buffer gradients;
  };

  void RecordShares();
  // Calls work(i, begin, end) with the i-th part of the parameter buffer on every thread.
  template <typename Work>
  void ForEachPart(const Work& work);

  const TrainingSettings& settings_;
  ParameterTable parameters_;
  std::vector<Share> shares_;
  Buffer weights_;
  std::unique_ptr<AdamW> optimizer_;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_LEARNER_H_
