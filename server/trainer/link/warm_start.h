// A trainer that is started ahead of its attempt: loaded, and nothing else.
#ifndef NORMLAB_SERVER_TRAINER_LINK_WARM_START_H_
#define NORMLAB_SERVER_TRAINER_LINK_WARM_START_H_

#include "absl/status/statusor.h"
#include "server/trainer/link/attempt.h"

namespace normlab::trainer {

// Whether these are the arguments of one that is to wait: normlab-trainer --warm [room for ps]
bool IsWarmStart(int argc, const char* const* argv);

// Tells the shepherd, over the line that is descriptor 3, that this process is loaded, and waits to
// be told which attempt it is. Then the environment, the working folder, the log and what ps shows
// are those of a trainer that was started for this attempt. CANCELLED when there will be none.
//
// Call it before the process has any other thread, and before the engine has computed anything or
// asked for a device: both look at the environment, once.
absl::StatusOr<AttemptArguments> WaitForAttempt(int argc, char** argv);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_LINK_WARM_START_H_
