// What a run becomes when an attempt of it has ended: a pure function of how it ended, what was
// wanted of the run, and what its settings say about limits, faults and interruptions.
#ifndef NORMLAB_SERVER_APP_AFTER_ATTEMPT_H_
#define NORMLAB_SERVER_APP_AFTER_ATTEMPT_H_

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "normlab/v1/run.pb.h"
#include "server/domain/run_state.h"
#include "server/storage/attempts.h"
#include "server/storage/run_control.h"

namespace normlab::app {

struct EndedAttempt {
  const v1::Run& run;  // as it was until then
  const storage::RunControl& control;
  const domain::AttemptEnd& end;
  std::vector<storage::AttemptRow> attempts;  // oldest first; the last one is it
  std::filesystem::path checkpoints;          // folder of the run's checkpoints
  std::string makes_room_for = {};            // name of that run, when it was preempted
  std::string lost_device = {};               // what is wrong with its GPU, if that does not answer
};

struct AfterAttempt {
  v1::Run::State state = v1::Run::STATE_UNSPECIFIED;  // QUEUED, PAUSED or terminal
  std::string reason = {};                            // why it waits, or ended
  std::string attempt_reason = {};                    // how the attempt ended
  bool interrupted = false;                           // by nothing that the run or the server did
  bool start_afresh = false;                          // the next attempt uses no checkpoint
  bool tried_again = false;                           // after a fault of its own
  std::chrono::seconds pause{0};                      // before the next attempt
};
AfterAttempt DecideAfterAttempt(const EndedAttempt& ended);

// Before the next try of a run that was tried again so often already: 10 s, 20 s, 40 s, ...
std::chrono::seconds PauseAfterFault(int64_t tries);

// No pause before an attempt is longer.
inline constexpr std::chrono::minutes kLongestPause(10);

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_AFTER_ATTEMPT_H_
