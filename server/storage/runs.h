// Runs as rows; their attempts are in attempts.h. Functions run inside the caller's transaction.
#ifndef NORMLAB_SERVER_STORAGE_RUNS_H_
#define NORMLAB_SERVER_STORAGE_RUNS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "normlab/v1/run.pb.h"
#include "server/storage/attempts.h"
#include "server/storage/sqlite.h"
#include "server/storage/writer.h"

namespace normlab::storage {

// What runs.nan_numbers is a sum of: numbers that are NaN, where NULL would say "there is none".
inline constexpr int64_t kNanFinalLoss = 1;
inline constexpr int64_t kNanFinalGradientNorm = 2;
inline constexpr int64_t kNanValidationLoss = 4;

// --- writing: on the writer's thread ---

// Inserts a new run and publishes it. `run.create_time` is set by this. Of the summary it keeps
// what is known before training: parameter_count, flops_per_step and memory_bytes. `stored`, if
// given, becomes the run as ReadRun has it.
absl::Status InsertRun(WriteContext& context, v1::Run run, v1::Run* stored = nullptr);

// Reads the run, lets `change` change state, reasons, exit, start and end, writes it back and
// publishes the new snapshot (and the end of its curve once it is terminal). An error from
// `change` is returned and nothing is written. Progress and summary are not written by this.
// When the run so ends without success, those that were to start after its success are cancelled
// with it, and so on (dependencies.h).
absl::Status UpdateRun(WriteContext& context, const std::string& id,
                       const std::function<absl::Status(v1::Run&)>& change);

// --- reading ---

// NOT_FOUND when there is no such run.
absl::StatusOr<v1::Run> ReadRun(Database& database, std::string_view id);

// Id of the run that `text` stands for: its id, else its name, else a prefix of its id that no
// other run has. NOT_FOUND, or FAILED_PRECONDITION with some of the runs when it stands for
// several.
absl::StatusOr<std::string> ResolveRun(Database& database, const std::string& text);

struct RunQuery {
  std::string experiment;              // empty: any
  std::vector<v1::Run::State> states;  // empty: any
  std::string before;                  // only ids below this one; empty: from the newest
  int limit = 50;
  bool oldest_first = false;  // then `before` is not used, but
  std::string after;          // only ids above this one; empty: from the oldest
};
absl::StatusOr<std::vector<v1::Run>> ReadRuns(Database& database, const RunQuery& query);

// A change of a run; many may have one sequence. As a place in the order of changes, (sequence,
// id), it stands for itself or, with an empty id, for all of its sequence.
struct ChangedRun {
  std::string id;
  uint64_t sequence = 0;
};
// Runs whose snapshot changed behind `place`, in the order of their latest changes, at most
// `limit`.
absl::StatusOr<std::vector<ChangedRun>> RunsChangedSince(Database& database,
                                                         const ChangedRun& place, int limit);

// The highest id of a run or an experiment; empty when there is none.
absl::StatusOr<std::string> ReadLatestId(Database& database);

// The sequence that this transaction sees.
absl::StatusOr<uint64_t> ReadSequence(Database& database);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_RUNS_H_
