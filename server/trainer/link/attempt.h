// One attempt, from its arguments to its exit code.
#ifndef NORMLAB_SERVER_TRAINER_LINK_ATTEMPT_H_
#define NORMLAB_SERVER_TRAINER_LINK_ATTEMPT_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/status/statusor.h"

namespace normlab::trainer {

struct AttemptArguments {
  std::string run;
  int32_t attempt = 0;
  std::filesystem::path directory;      // has `token` and `spool`
  std::filesystem::path endpoint_file;  // where the server writes how to reach it
  std::string device;
  int32_t threads = 0;
};

// Exit codes of the trainer. How a run ended is in its last record, Finished; the code is for the
// case that there is none, and for people.
enum ExitCode {
  kExitEnded = 0,       // succeeded, diverged, paused or stopped, as Finished says
  kExitFault = 1,       // a fault, with its reason in Finished
  kExitUsage = 2,       // wrong arguments; there is no Finished
  kExitServerLost = 3,  // orphaned: no server was there for long; with a checkpoint if it could
  kExitRefused = 4,     // stopped because the server did not accept the attempt
};

// normlab-trainer --run ID --attempt N --dir DIR --endpoint-file FILE --device D --threads N
absl::StatusOr<AttemptArguments> ParseArguments(int argc, const char* const* argv);

// Gets its assignment, trains, and sees to it that everything is either stored by the server or in
// the spool. SIGTERM and SIGINT stop training after the present step.
//
// At the end it waits 5 s at most for the server to store the last records. After that it exits all
// the same: the server reads the spool out as soon as this process has ended, or when it is back.
//
// Call it before the process has any other thread: it blocks those two signals for all of them.
ExitCode RunAttempt(const AttemptArguments& arguments);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_LINK_ATTEMPT_H_
