// The profiling pass of Admin (Liu et al. 2020, arXiv 2004.08249).
#ifndef NORMLAB_SERVER_TRAINER_MODEL_ADMIN_PROFILE_H_
#define NORMLAB_SERVER_TRAINER_MODEL_ADMIN_PROFILE_H_

#include <span>

#include "server/trainer/model/batch.h"
#include "server/trainer/model/parameters.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

// Sets the omegas of a freshly initialised model by one forward pass, without dropout, over
// `batch`: with r = 1 at first, each sum omega * x + F(x), in order, gets omega = r in every
// channel, and then r = sqrt(Var(omega * x) + Var(F(x))), the variances over all entries. So a
// branch counts the less the more of them are already in the stream. `batch` is the whole batch of
// a step, so the result does not depend on the number of threads. `parameters` are those of the
// model that `settings` describe, `weights` its parameters.buffer_size() floats.
void ProfileAdmin(const TrainingSettings& settings, ParameterTable& parameters,
                  std::span<float> weights, const Batch& batch);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_ADMIN_PROFILE_H_
