// Reading points. Functions run inside the caller's read transaction.
#ifndef NORMLAB_SERVER_STORAGE_CURVES_H_
#define NORMLAB_SERVER_STORAGE_CURVES_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/domain/downsample.h"
#include "server/storage/runs.h"
#include "server/storage/sqlite.h"

namespace normlab::storage {

struct NamedCurve {
  std::string name;
  domain::Curve curve;
};

struct StepRange {
  int64_t first = 0;
  int64_t last = std::numeric_limits<int64_t>::max();
};

// The default curve of a run: the latest attempt's steps and, below the checkpoint each attempt
// went on from, its ancestors'. All series, or those of `names` in that order (a name without
// points gives an empty curve).
absl::StatusOr<std::vector<NamedCurve>> ReadDefaultCurves(Database& database, std::string_view run,
                                                          const std::vector<std::string>& names,
                                                          StepRange range);

// Names of the series that the default curve has, in the order in which they were declared.
absl::StatusOr<std::vector<std::string>> ReadSeriesNames(Database& database, std::string_view run);

// Where a reader of all of a run's points stands: attempt by attempt, step by step.
struct HistoryPosition {
  int32_t attempt = 0;  // points of earlier attempts were read
  int64_t step = 0;     // points of `attempt` up to this step were read
};

struct HistoryPage {
  std::vector<v1::Points> points;  // in order of attempt; each whole in its steps
  HistoryPosition position;        // behind the last one
  bool complete = false;           // nothing is left in this transaction's view
};

// Where a watcher stands who has seen everything up to the write `sequence`.
absl::StatusOr<HistoryPosition> PositionAt(Database& database, std::string_view run,
                                           uint64_t sequence);

// The points after `position`, about `limit` of them.
absl::StatusOr<HistoryPage> ReadHistory(Database& database, std::string_view run,
                                        HistoryPosition position, int64_t from_step, int64_t limit);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_CURVES_H_
