#include "server/executor/process_owner.h"

#include <optional>

#include "server/base/subprocess.h"

namespace normlab::executor {

std::string RunOfProcess(pid_t pid, const std::filesystem::path& attempts) {
  const std::optional<std::string> directory = EnvironmentOf(pid, kAttemptVariable);
  if (!directory) return "";
  const std::filesystem::path path(*directory);
  if (path.parent_path() != attempts) return "";
  const std::string name = path.filename();
  return name.substr(0, name.rfind('-'));
}

}  // namespace normlab::executor
