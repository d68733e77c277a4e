// Update rules over the flat parameter buffer.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_OPTIMIZER_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "server/trainer/model/kernels/kernels.h"
#include "server/trainer/model/parameters.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

class Optimizer {
 public:
  // One number for every parameter that outlives a step, laid out like the parameter buffer. A
  // checkpoint writes all of them and reads them back.
  struct State {
    std::string_view name;
    std::span<float> values;
  };

  virtual ~Optimizer() = default;

  // The update of step `step` (from 1) for buffer positions [begin, end). Ranges of one step may
  // run on several threads.
  virtual void Update(int64_t step, double learning_rate, int64_t begin, int64_t end,
                      const float* gradients, float* weights) = 0;

  virtual std::vector<State> States() = 0;
};

// The optimiser `settings.optimizer` names; `settings` must outlive it.
//
//   adamw  Loshchilov and Hutter 2019: bias-corrected averages m of g and v of g^2,
//          w -= rate (m / (sqrt(v) + epsilon) + decay w)
//   sgd    momentum as PyTorch has it, without dampening: b = momentum b + g,
//          w -= rate (b + decay w)
//
// In both the decay is decoupled: it never enters m, v or b.
std::unique_ptr<Optimizer> MakeOptimizer(const TrainingSettings& settings,
                                         const ParameterTable& parameters,
                                         const Kernels& kernels = BestKernels());

// Neighbouring parameters with the same weight decay, in the parameter buffer.
struct DecaySegment {
  int64_t begin;
  int64_t end;
  float decay;
};
std::vector<DecaySegment> DecaySegments(const TrainingSettings& settings,
                                        const ParameterTable& parameters);

// What AdamW multiplies its average of `beta` with at step `step`: 1 / (1 - beta^step).
float BiasCorrection(double beta, int64_t step);

// Throws std::runtime_error naming the setting if there is no such optimiser.
void CheckOptimizer(const TrainingSettings& settings);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_OPTIMIZER_H_
