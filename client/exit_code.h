// What a command's exit status says; scripts rely on these.
#ifndef NORMLAB_CLIENT_EXIT_CODE_H_
#define NORMLAB_CLIENT_EXIT_CODE_H_

namespace normlab::client {

enum ExitCode {
  kExitOk = 0,
  kExitRunFailed = 1,     // a run failed, was cancelled or timed out
  kExitUsage = 2,         // the command line is wrong
  kExitNoServer = 3,      // no server answers
  kExitRefused = 4,       // the server refused, or there is no such thing
  kExitDiverged = 5,      // a run diverged, and none failed
  kExitExpectation = 6,   // a preset's numbers are not where they should be
  kExitInterrupted = 130  // Ctrl-C
};

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_EXIT_CODE_H_
