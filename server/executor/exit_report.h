// What a shepherd writes about the end of its attempt.
#ifndef NORMLAB_SERVER_EXECUTOR_EXIT_REPORT_H_
#define NORMLAB_SERVER_EXECUTOR_EXIT_REPORT_H_

#include <filesystem>

#include "server/executor/executor.h"

namespace normlab::executor {

// From DIRECTORY/exit.json; `lost`, with what was found instead, when it is missing or no report.
ExitReport ReadExitReport(const std::filesystem::path& directory);

}  // namespace normlab::executor

#endif  // NORMLAB_SERVER_EXECUTOR_EXIT_REPORT_H_
