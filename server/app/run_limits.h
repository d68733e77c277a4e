// How long and how far a run may still train. Functions of its settings and its attempts, oldest
// first; attempts up to the number `limits_from` do not count.
#ifndef NORMLAB_SERVER_APP_RUN_LIMITS_H_
#define NORMLAB_SERVER_APP_RUN_LIMITS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "normlab/v1/run_spec.pb.h"
#include "server/storage/attempts.h"

namespace normlab::app {

// Seconds that the attempts have run.
double SecondsRun(const std::vector<storage::AttemptRow>& attempts, int64_t limits_from);

// Seconds of its time_limit that are left beyond those of `attempts`; below 0 when it ran longer.
// Absent when it has no limit.
std::optional<double> SecondsLeft(const v1::RunSpec& effective,
                                  const std::vector<storage::AttemptRow>& attempts,
                                  int64_t limits_from);

// The step behind which its latest attempt stops; 0 when it has no limit. It is step_limit. A run
// that had come to it and was tried again may do as many steps once more: the next multiple.
int64_t StepLimit(const v1::RunSpec& effective, const std::vector<storage::AttemptRow>& attempts,
                  int64_t limits_from);

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_RUN_LIMITS_H_
