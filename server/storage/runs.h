// Runs and attempts as rows. Functions run inside the caller's transaction.
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
#include "server/storage/sqlite.h"
#include "server/storage/writer.h"

namespace normlab::storage {

// An attempt, with what only the server needs to know.
struct AttemptRow {
  int64_t id = 0;
  std::string run;
  int32_t number = 0;
  std::string device;
  std::string directory;  // below the data folder
  std::string token_sha256;
  int64_t resumed_from_step = 0;
  int64_t start_time = 0;  // microseconds UTC
  std::optional<int64_t> end_time;
  int64_t last_step = 0;
  uint64_t persisted_sequence = 0;
  int32_t outcome = 0;  // worker.v1.Finished.Outcome
  std::string outcome_reason;
  std::optional<int64_t> shepherd_pid;
  int64_t shepherd_start_ticks = 0;
  std::string shepherd_boot_id;
  uint64_t started_sequence = 0;
  // Its latest checkpoint; step 0 when it has none.
  int64_t checkpoint_step = 0;
  std::string checkpoint_file;  // in the run's folder for checkpoints
  int64_t checkpoint_bytes = 0;
};

// What runs.nan_numbers is a sum of: numbers that are NaN, where NULL would say "there is none".
inline constexpr int64_t kNanFinalLoss = 1;
inline constexpr int64_t kNanFinalGradientNorm = 2;
inline constexpr int64_t kNanValidationLoss = 4;

// --- writing: on the writer's thread ---

// Inserts a new run and publishes it. `run.create_time` is set by this. Of the summary it keeps
// what is known before training: parameter_count, flops_per_step and memory_bytes.
absl::Status InsertRun(WriteContext& context, v1::Run run);

// Reads the run, lets `change` change state, reasons, exit, start and end, writes it back and
// publishes the new snapshot (and the end of its curve once it is terminal). An error from
// `change` is returned and nothing is written. Progress and summary are not written by this.
absl::Status UpdateRun(WriteContext& context, const std::string& id,
                       const std::function<absl::Status(v1::Run&)>& change);

// Inserts an attempt; number and id are given by this, and returned. Publishes nothing: the run's
// snapshot that follows holds its attempts.
absl::StatusOr<AttemptRow> InsertAttempt(WriteContext& context, AttemptRow attempt);

absl::Status SetShepherd(WriteContext& context, const AttemptRow& attempt);

struct AttemptUsage {
  int64_t max_rss_bytes = 0;
  double cpu_seconds = 0;
};
absl::Status EndAttempt(WriteContext& context, int64_t attempt, const AttemptUsage& usage);

// --- reading ---

// NOT_FOUND when there is no such run.
absl::StatusOr<v1::Run> ReadRun(Database& database, std::string_view id);

// Id of the run that `text` stands for: its id, else its name, else a prefix of its id that no
// other run has. NOT_FOUND, or FAILED_PRECONDITION with some of the runs when it stands for several.
absl::StatusOr<std::string> ResolveRun(Database& database, const std::string& text);

struct RunQuery {
  std::string experiment;              // empty: any
  std::vector<v1::Run::State> states;  // empty: any
  std::string before;                  // only ids below this one; empty: from the newest
  int limit = 50;
  bool oldest_first = false;  // then `before` is not used
};
absl::StatusOr<std::vector<v1::Run>> ReadRuns(Database& database, const RunQuery& query);

// Ids of runs whose snapshot changed after `sequence`, in the order of their changes, at most
// `limit`; 0 as sequence means all.
struct ChangedRun {
  std::string id;
  uint64_t sequence;
};
absl::StatusOr<std::vector<ChangedRun>> RunsChangedSince(Database& database, uint64_t sequence,
                                                         int limit);

// The latest attempt of a run. NOT_FOUND when it has none.
absl::StatusOr<AttemptRow> ReadLatestAttempt(Database& database, std::string_view run);
absl::StatusOr<std::vector<AttemptRow>> ReadAttempts(Database& database, std::string_view run);

// The latest attempt of a run that has a checkpoint. NOT_FOUND when there is none.
absl::StatusOr<AttemptRow> ReadLatestCheckpoint(Database& database, std::string_view run);

// The sequence that this transaction sees.
absl::StatusOr<uint64_t> ReadSequence(Database& database);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_RUNS_H_
