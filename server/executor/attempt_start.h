// With what arguments and in what environment an attempt's processes start, and how a pair of them
// that was started ahead is told.
#ifndef NORMLAB_SERVER_EXECUTOR_ATTEMPT_START_H_
#define NORMLAB_SERVER_EXECUTOR_ATTEMPT_START_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/base/subprocess.h"
#include "server/executor/local_executor.h"

namespace normlab::executor {

// Of the shepherd; the trainer's own are behind "--". The request's paths are absolute.
std::vector<std::string> ShepherdArguments(const LocalExecutorOptions& options,
                                           const LaunchRequest& request);
// Of one that is to wait for an attempt, with room to show later which it has become.
std::vector<std::string> WarmArguments(const LocalExecutorOptions& options);

// What keeps a trainer on its device and on its threads, and says whose its processes are.
// Oversubscribed threads that spin while they wait made runs ten times slower.
std::vector<std::string> AttemptEnvironment(const LaunchRequest& request);
// The same of a trainer that has no attempt yet: no GPU, one thread, and room for a folder's name.
std::vector<std::string> WarmEnvironment();

// `own`, and the server's environment but for its secrets and for what `own` replaces.
std::vector<std::string> WithServerEnvironment(std::vector<std::string> own);

// Tells a shepherd that waits at the other end of `line` what its attempt is, and to begin. `lock`
// goes to it. The attempt has begun when this returns OK, and will never begin when it does not:
// kill the shepherd then. Takes `patience` at most.
absl::Status HandOver(const UniqueFd& line, const std::vector<std::string>& arguments,
                      const std::vector<std::string>& environment, const UniqueFd& lock,
                      std::chrono::milliseconds patience);

}  // namespace normlab::executor

#endif  // NORMLAB_SERVER_EXECUTOR_ATTEMPT_START_H_
