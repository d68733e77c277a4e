// When a run's checkpoints are due. One that could not be written, as on a full disk, ends no run:
// it is owed, and tried again.
//
//   if (schedule.IsDue(step)) write() ? schedule.Written() : schedule.Failed();
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_CHECKPOINT_SCHEDULE_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_CHECKPOINT_SCHEDULE_H_

#include <chrono>
#include <cstdint>
#include <optional>

#include "server/trainer/trainer.h"

namespace normlab::trainer {

// Used by one thread. `settings` and `clock` outlive it.
class CheckpointSchedule {
 public:
  // Tries of one that is owed are so far apart: each may write most of the file before it fails.
  static constexpr std::chrono::seconds kRetry{30};

  // The age of the latest checkpoint counts from here.
  CheckpointSchedule(const TrainingSettings& settings, const MonotonicClock& clock)
      : settings_(settings), clock_(clock), written_at_(clock()) {}

  // One should be written behind `step`.
  bool IsDue(int64_t step) const {
    const bool last = step == settings_.steps;
    const int64_t every = settings_.checkpoint_every;
    if (last) return every > 0;  // for the weights: there is nothing to come back for
    if (retry_at_) return IsOld();
    return IsOld() || (every > 0 && step % every == 0);
  }

  // One should be written whatever the step: the latest is checkpoint_seconds old, or one is owed.
  bool IsOld() const {
    if (retry_at_) return clock_() >= *retry_at_;
    return settings_.checkpoint_seconds > 0 &&
           clock_() - written_at_ >= std::chrono::seconds(settings_.checkpoint_seconds);
  }

  void Written() {
    written_at_ = clock_();
    retry_at_.reset();
  }
  void Failed() { retry_at_ = clock_() + kRetry; }

 private:
  const TrainingSettings& settings_;
  const MonotonicClock& clock_;
  std::chrono::steady_clock::time_point written_at_;
  std::optional<std::chrono::steady_clock::time_point> retry_at_;  // when one is owed
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_CHECKPOINT_SCHEDULE_H_
