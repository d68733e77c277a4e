// Reading every point of a run in pages, for watchers and exports. Functions run inside the
// caller's read transaction; each page may have one of its own.
#ifndef NORMLAB_SERVER_STORAGE_HISTORY_H_
#define NORMLAB_SERVER_STORAGE_HISTORY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "normlab/v1/run_service.pb.h"
#include "server/storage/runs.h"
#include "server/storage/segments.h"
#include "server/storage/sqlite.h"

namespace normlab::storage {

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

// Points of one attempt, every step whole.
struct PointsPage {
  v1::Points points;
  int64_t last_step = 0;  // everything up to this step was read
};

// The first points of `segment`, about `limit` of them, and one step at least if there is one; all
// series, or those of `names`.
absl::StatusOr<PointsPage> ReadPage(Database& database, std::string_view run,
                                    const Segment& segment, const std::vector<std::string>& names,
                                    int64_t limit);

// Points of the longest series of `segment` (or of those of `names`): about as many steps as it
// has.
absl::StatusOr<int64_t> CountSteps(Database& database, const Segment& segment,
                                   const std::vector<std::string>& names);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_HISTORY_H_
