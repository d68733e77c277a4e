// Deadlines of calls by a clock that nobody sets.
//
//   context.set_deadline(DeadlineAfter(std::chrono::seconds(5)));
#ifndef NORMLAB_CLIENT_DEADLINE_H_
#define NORMLAB_CLIENT_DEADLINE_H_

#include <grpc/support/time.h>

#include <chrono>

namespace normlab::client {

inline gpr_timespec DeadlineAfter(std::chrono::milliseconds time) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_millis(time.count(), GPR_TIMESPAN));
}

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_DEADLINE_H_
