// The weights that a run's first step starts from.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_FIRST_WEIGHTS_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_FIRST_WEIGHTS_H_

#include "server/trainer/train/learner.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

// Completes what the learner drew: Admin's omegas are profiled on the run's first batch, drawn
// apart so that training still begins with it; then come the weights of `settings.init_file`.
// Throws std::runtime_error as LoadWeights() does.
void SetFirstWeights(const TrainingSettings& settings, Learner& learner);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_FIRST_WEIGHTS_H_
