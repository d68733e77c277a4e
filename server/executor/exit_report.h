// What a shepherd writes about itself and about the end of its attempt.
#ifndef NORMLAB_SERVER_EXECUTOR_EXIT_REPORT_H_
#define NORMLAB_SERVER_EXECUTOR_EXIT_REPORT_H_

#include <filesystem>
#include <optional>

#include "server/executor/executor.h"

namespace normlab::executor {

// From DIRECTORY/exit.json; `lost`, with what was found instead, when it is missing or no report.
ExitReport ReadExitReport(const std::filesystem::path& directory);

// Who the shepherd is or was, from DIRECTORY/shepherd.json, which is there once it has started its
// trainer.
std::optional<ProcessIdentity> ReadShepherdFile(const std::filesystem::path& directory);

}  // namespace normlab::executor

#endif  // NORMLAB_SERVER_EXECUTOR_EXIT_REPORT_H_
