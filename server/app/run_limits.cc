#include "server/app/run_limits.h"

namespace normlab::app {

using storage::AttemptRow;

double SecondsRun(const std::vector<AttemptRow>& attempts, int64_t limits_from) {
  double seconds = 0;
  for (const AttemptRow& attempt : attempts) {
    if (attempt.number > limits_from) seconds += attempt.run_seconds;
  }
  return seconds;
}

std::optional<double> SecondsLeft(const v1::RunSpec& effective,
                                  const std::vector<AttemptRow>& attempts, int64_t limits_from) {
  if (!(effective.time_limit() > 0)) return std::nullopt;
  return effective.time_limit() - SecondsRun(attempts, limits_from);
}

int64_t StepLimit(const v1::RunSpec& effective, const std::vector<AttemptRow>& attempts,
                  int64_t limits_from) {
  const int64_t limit = effective.step_limit();
  if (limit <= 0) return 0;
  for (const AttemptRow& attempt : attempts) {
    // What its attempts since then began with says whether it had come to the limit before.
    if (attempt.number > limits_from) return limit * (attempt.resumed_from_step / limit + 1);
  }
  return limit;
}

}  // namespace normlab::app
