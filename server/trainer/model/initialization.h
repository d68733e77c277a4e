// The weights a run starts from: `init` maps each parameter's role to a distribution.
//
// | init     | kernels                                      | embedding   | head        |
// |----------|----------------------------------------------|-------------|-------------|
// | flax     | LeCun normal, truncated: variance 1 / fan_in | N(0, 1)     | N(0, .02^2) |
// | gpt2     | N(0, .02^2), outputs .02 / sqrt(branches)    | N(0, .02^2) | N(0, .02^2) |
// | xavier   | U(+-sqrt(6 / (fan_in + fan_out)))            | N(0, 1)     | as kernels  |
// | torch    | U(+-1 / sqrt(fan_in)), biases too            | N(0, 1)     | as kernels  |
// | fan-in   | N(0, 1 / fan_in)                             | N(0, 1)     | as kernels  |
// | deepnorm | gain * N(0, 2 / (fan_in + fan_out))          | N(0, 1)     | N(0, .02^2) |
// | admin    | as xavier; omegas by admin_profile.h         | N(0, 1)     | N(0, .02^2) |
//
// Learned positions start at 0, with gpt2 at N(0, .02^2); biases at 0 except with torch. Fan-in and
// fan-out are those of the matrix in the formula: where queries, keys and values are made by one
// fused kernel, those of each third. An embedding that is the head as well is drawn as the head.
// The streams are those of JAX, keyed by the parameter's path, so no parameter's values depend on
// which others exist.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_INITIALIZATION_H_
#define NORMLAB_SERVER_TRAINER_MODEL_INITIALIZATION_H_

#include <span>

#include "server/trainer/model/parameters.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

// Fills `buffer`, table.buffer_size() floats, with the weights of settings.init and settings.seed;
// gaps between tensors become 0. Throws std::runtime_error if there is no such init.
void InitializeParameters(const TrainingSettings& settings, const ParameterTable& table,
                          std::span<float> buffer);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_INITIALIZATION_H_
