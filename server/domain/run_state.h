// The states of a run and which follow which.
//
//   QUEUED -> STARTING -> RUNNING -> SUCCEEDED | FAILED | DIVERGED | TIMED_OUT
//     |  ^       |  \        |
//     |  |       |   QUEUED  +-> CANCELLING -> CANCELLED (or whatever the trainer reached first)
//     |  |       |           |
//     |  |       +-----------+-> PAUSING -> PAUSED, or as from RUNNING
//     |  +-- PAUSED <- QUEUED
//     +-> CANCELLED, from PAUSED as well
#ifndef NORMLAB_SERVER_DOMAIN_RUN_STATE_H_
#define NORMLAB_SERVER_DOMAIN_RUN_STATE_H_

#include <optional>
#include <string>
#include <string_view>

#include "normlab/v1/run.pb.h"

namespace normlab::domain {

using RunState = v1::Run::State;

// No state follows a terminal one.
bool IsTerminal(RunState state);

// Holds a device: STARTING, RUNNING, PAUSING, CANCELLING.
bool IsActive(RunState state);

bool MayFollow(RunState from, RunState to);

// "running", for people.
std::string_view StateWord(RunState state);

// How the processes and the training of an attempt ended, as far as is known.
struct AttemptEnd {
  enum class Outcome { kNone, kSucceeded, kDiverged, kStopped, kFailed, kPaused };
  Outcome outcome = Outcome::kNone;  // the trainer's own last record
  std::string outcome_reason;
  std::optional<int> exit_code;
  std::optional<int> exit_signal;
  bool lost = false;   // the processes are gone without a report
  std::string detail;  // what was found, when lost
  int64_t last_step = 0;
  int64_t max_rss_bytes = 0;
};

struct StateAndReason {
  RunState state;
  std::string reason;  // a sentence for people; empty for a plain success and a pause
};

// What a run becomes when its attempt ended like that: a terminal state, or PAUSED. `cancelling`:
// somebody had asked for its end.
StateAndReason StateAfter(const AttemptEnd& end, bool cancelling);

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_RUN_STATE_H_
