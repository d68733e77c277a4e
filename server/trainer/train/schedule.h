// The learning rate of a step.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_SCHEDULE_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_SCHEDULE_H_

#include <cstdint>

#include "server/trainer/trainer.h"

namespace normlab::trainer {

// The rate of step t, counted from 1, with r = learning_rate, W = warmup_steps, N = steps:
//
//   warmup    r t / W while t < W, so the first update already has r / W and step W has r; W = 0
//             is none. Composes with all schedules but noam.
//   constant  r
//   cosine    floor + (r - floor) (1 + cos(pi p)) / 2     (Loshchilov and Hutter 2017)
//   linear    floor + (r - floor) (1 - p)
//             where p goes from 0 at step max(1, W), the full rate, to 1 at step N, the floor.
//   noam      r d_model^-1/2 min(t^-1/2, t W^-3/2)        (Vaswani et al. 2017)
double LearningRate(const TrainingSettings& settings, int64_t step);

// Throws std::runtime_error naming the setting if there is no such schedule.
void CheckSchedule(const TrainingSettings& settings);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_SCHEDULE_H_
