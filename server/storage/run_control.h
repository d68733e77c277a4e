// What the server notes of a run for itself: why it stops it, and how it is tried again. Functions
// run inside the caller's transaction.
#ifndef NORMLAB_SERVER_STORAGE_RUN_CONTROL_H_
#define NORMLAB_SERVER_STORAGE_RUN_CONTROL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/storage/sqlite.h"
#include "server/storage/writer.h"

namespace normlab::storage {

// Why the server itself tells an active run to stop; what the run becomes follows from it. A run
// that goes back into the queue keeps it until its next attempt.
enum class StopCause {
  kNone,       // nobody does, or a person: see the run's state
  kTime,       // its time_limit is used up
  kPreempted,  // it makes room; the detail is the id of the run that it makes room for
  kServer,     // the server stops
  kEarly,      // it does worse than its peers; the detail is the reason
  kMemory,     // it holds more of a shared GPU's memory than its budget; the detail is the reason
};

// As it is stored.
absl::StatusOr<StopCause> StopCauseOf(std::string_view text);

struct RunControl {
  StopCause stop_cause = StopCause::kNone;
  std::string stop_detail = {};
  std::optional<int64_t> not_before = {};  // while queued: not started before, microseconds UTC
  int64_t tries = 0;  // so often it was tried again by itself since somebody last asked for it
  // Attempts up to this number do not count towards its limits: somebody had it tried again since.
  int64_t limits_from = 0;
  void ClearStop() {
    stop_cause = StopCause::kNone;
    stop_detail.clear();
  }
  bool operator==(const RunControl&) const = default;
};

// NOT_FOUND when there is no such run.
absl::StatusOr<RunControl> ReadRunControl(Database& database, std::string_view run);

// Publishes nothing: the run's snapshot has none of it.
absl::Status WriteRunControl(WriteContext& context, std::string_view run,
                             const RunControl& control);

// QUEUED runs that are not to be started before a time, and that time.
absl::StatusOr<std::map<std::string, int64_t>> ReadHeldBack(Database& database);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_RUN_CONTROL_H_
