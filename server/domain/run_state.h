// The states of a run and which follow which.
//
//   QUEUED -> STARTING -> RUNNING -> SUCCEEDED | FAILED | DIVERGED | TIMED_OUT
//     |  ^       |           |
//     |  |       |           +-> CANCELLING -> CANCELLED (or whatever the trainer reached first)
//     |  |       +-----------+-> PAUSING -> PAUSED, or as from RUNNING
//     |  +-- PAUSED <- QUEUED
//     |  +-- STARTING, RUNNING, when interrupted, never launched, or tried again after a fault
//     |  +-- PAUSING, when it was told to by the server, to go on by itself
//     |  +-- FAILED, CANCELLED, DIVERGED, TIMED_OUT, when somebody wants it tried again
//     +-> CANCELLED, from PAUSED as well
#ifndef NORMLAB_SERVER_DOMAIN_RUN_STATE_H_
#define NORMLAB_SERVER_DOMAIN_RUN_STATE_H_

#include <optional>
#include <string>
#include <string_view>

#include "normlab/v1/run.pb.h"

namespace normlab::domain {

using RunState = v1::Run::State;

// Nothing happens to a run in a terminal state by itself.
bool IsTerminal(RunState state);

// Holds a device: STARTING, RUNNING, PAUSING, CANCELLING.
bool IsActive(RunState state);

bool MayFollow(RunState from, RunState to);

// "running", for people.
std::string_view StateWord(RunState state);

// How the processes and the training of an attempt ended, as far as is known.
struct AttemptEnd {
  enum class Outcome {
    kNone,
    kSucceeded,
    kDiverged,
    kStopped,
    kFailed,
    kPaused,
    kOrphaned,
    kLimit,
    kUnreadable,  // it could not read the checkpoint it was to go on from, and put it aside
  };
  Outcome outcome = Outcome::kNone;  // the trainer's own last record
  std::string outcome_reason;
  std::optional<int> exit_code;
  std::optional<int> exit_signal;
  bool lost = false;           // the processes are gone without a report
  bool never_started = false;  // there were no processes, and there is no use in trying again
  std::string detail;          // what was found, when lost or never started
  int64_t last_step = 0;
  int64_t max_rss_bytes = 0;
};

struct StateAndReason {
  RunState state;
  std::string reason;  // a sentence for people; empty for a plain success and a pause
};

// Whether it ended because its processes were killed from outside or lost, or had no server for
// long. A crash, an exit code, an exception or a divergence is the run's own; what it does again it
// would end by again. Not asked of a run that is being cancelled.
bool WasInterrupted(const AttemptEnd& end);

// What a run becomes when its attempt ended like that and nothing follows: a terminal state, or
// PAUSED. `cancelling`: somebody had asked for its end.
StateAndReason StateAfter(const AttemptEnd& end, bool cancelling);

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_RUN_STATE_H_
