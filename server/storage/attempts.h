// Attempts as rows. Functions run inside the caller's transaction.
#ifndef NORMLAB_SERVER_STORAGE_ATTEMPTS_H_
#define NORMLAB_SERVER_STORAGE_ATTEMPTS_H_

#include <cstdint>
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
  // The checkpoint it went on from; all 0 and empty when it started afresh.
  int32_t resumed_from_attempt = 0;  // number
  int64_t resumed_from_step = 0;
  std::string resumed_from_file;
  int64_t start_time = 0;  // microseconds UTC
  std::optional<int64_t> end_time;
  int64_t last_step = 0;
  uint64_t persisted_sequence = 0;
  int32_t outcome = 0;  // worker.v1.Finished.Outcome
  std::string outcome_reason;
  std::optional<int64_t> shepherd_pid;
  int64_t shepherd_start_ticks = 0;
  std::string shepherd_boot_id;
  double began = 0;  // seconds since boot (BootSeconds); the shepherd may have waited, and be older
  uint64_t started_sequence = 0;
  // Its latest checkpoint, and the one before it; step 0 when it has none.
  int64_t checkpoint_step = 0;
  std::string checkpoint_file;  // in the run's folder for checkpoints
  int64_t checkpoint_bytes = 0;
  int64_t earlier_checkpoint_step = 0;
  std::string earlier_checkpoint_file;
  double run_seconds = 0;  // so far; 0 while unknown
  std::string end_reason;
  bool interrupted = false;  // its processes were killed or lost, through no fault of the run
  bool abandoned = false;    // the next attempt starts afresh
  int64_t gpu_memory_bytes = 0;  // of each GPU, that it may use; 0 on CPUs
  bool exclusive = false;        // it has its GPUs for itself
};

// Inserts an attempt; number and id are given by this, and returned. The run's progress and summary
// become those of the steps that it goes on from. Publishes nothing: the run's snapshot that
// follows holds its attempts.
absl::StatusOr<AttemptRow> InsertAttempt(WriteContext& context, AttemptRow attempt);

absl::Status SetShepherd(WriteContext& context, const AttemptRow& attempt);

// What is known of an attempt once it has ended.
struct AttemptEndRow {
  int64_t max_rss_bytes = 0;
  double cpu_seconds = 0;
  std::optional<double> run_seconds = {};  // absent: what was noted with its last records stays
  std::string reason = {};
  bool interrupted = false;
  bool abandoned = false;
};
absl::Status EndAttempt(WriteContext& context, int64_t attempt, const AttemptEndRow& end);

// Changes what the next attempt makes of an ended one.
absl::Status SetAbandoned(WriteContext& context, int64_t attempt, bool abandoned);
absl::Status SetInterrupted(WriteContext& context, int64_t attempt, bool interrupted);

// --- reading ---

// Oldest first.
absl::StatusOr<std::vector<AttemptRow>> ReadAttempts(Database& database, std::string_view run);

// The latest attempt of a run. NOT_FOUND when it has none.
absl::StatusOr<AttemptRow> ReadLatestAttempt(Database& database, std::string_view run);

// What everybody may know of an attempt.
v1::Attempt AttemptMessage(const AttemptRow& row);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_ATTEMPTS_H_
