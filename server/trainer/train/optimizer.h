// AdamW over the flat parameter buffer, and the learning rate of a step.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_OPTIMIZER_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_OPTIMIZER_H_

#include <cstdint>
#include <vector>

#include "server/trainer/model/buffer.h"
#include "server/trainer/model/kernels/kernels.h"
#include "server/trainer/model/parameters.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

// The rate of step `step`, counted from 1. With linear warmup over W steps: rate * min(1, step /
// W), so the first update already has rate / W and step W the full rate. W = 0 is no warmup.
double LearningRate(const TrainingSettings& settings, int64_t step);

// AdamW with decoupled weight decay (Loshchilov and Hutter 2019): bias-corrected averages of g and
// g^2, epsilon outside the square root.
class AdamW {
 public:
  AdamW(const TrainingSettings& settings, const ParameterTable& parameters,
        const Kernels& kernels = BestKernels());

  // The update of step `step` (from 1) for buffer positions [begin, end). Ranges of one step may
  // run on several threads.
  void Update(int64_t step, double learning_rate, int64_t begin, int64_t end,
              const float* gradients, float* weights);

 private:
  // Neighbouring parameters with the same decay.
  struct Segment {
    int64_t begin;
    int64_t end;
    float decay;
  };

  const TrainingSettings& settings_;
  const Kernels& kernels_;
  std::vector<Segment> segments_;
  Buffer first_moment_;
  Buffer second_moment_;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_OPTIMIZER_H_
