// What people say about runs: name, labels, notes, pinned, archived.
#ifndef NORMLAB_SERVER_STORAGE_RUN_DESCRIPTION_H_
#define NORMLAB_SERVER_STORAGE_RUN_DESCRIPTION_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/storage/writer.h"

namespace normlab::storage {

// What is to change; absent is left as it is. The values were checked (domain/run_words.h).
struct RunDescription {
  std::optional<std::string> display_name;
  std::optional<std::vector<std::string>> labels;
  std::optional<std::string> notes;
  std::optional<bool> pinned;
  std::optional<bool> archived;
  bool empty() const { return !display_name && !labels && !notes && !pinned && !archived; }
};

// Writes it and publishes the run as it now is. NOT_FOUND when there is no such run. On the
// writer's thread.
absl::Status DescribeRun(WriteContext& context, const std::string& run,
                         const RunDescription& description);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_RUN_DESCRIPTION_H_
