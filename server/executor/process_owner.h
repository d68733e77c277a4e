// Whose a process is, by what all processes of an attempt inherit.
#ifndef NORMLAB_SERVER_EXECUTOR_PROCESS_OWNER_H_
#define NORMLAB_SERVER_EXECUTOR_PROCESS_OWNER_H_

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace normlab::executor {

// In the environment of all processes of an attempt: its folder, absolute and in one spelling. What
// left the process group and the session has it as well.
inline constexpr char kAttemptVariable[] = "NORMLAB_ATTEMPT_DIR";

// Id of the run whose attempt, in a folder RUN-NUMBER of `attempts` (absolute), the process belongs
// to. Empty for any other process. Any thread.
std::string RunOfProcess(pid_t pid, const std::filesystem::path& attempts);

}  // namespace normlab::executor

#endif  // NORMLAB_SERVER_EXECUTOR_PROCESS_OWNER_H_
