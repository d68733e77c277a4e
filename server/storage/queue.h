// What the scheduler needs of the database: the runs that wait, those that hold devices, the users,
// and what was used and measured before. Functions run inside the caller's transaction; none makes
// one query a run.
#ifndef NORMLAB_SERVER_STORAGE_QUEUE_H_
#define NORMLAB_SERVER_STORAGE_QUEUE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/storage/run_control.h"
#include "server/storage/sqlite.h"

namespace normlab::storage {

struct QueuedRow {
  std::string id;
  std::string display_name;
  std::string user;
  int64_t priority = 0;
  int64_t rank = 0;
  std::string device;   // as asked for
  int64_t threads = 1;  // as resolved
  bool preemptible = false;
  bool held = false;
  std::optional<int64_t> not_before;  // microseconds UTC
  int64_t gpus = 0;                   // 0: one
  int64_t gpu_memory_bytes = 0;       // 0: as estimated
  bool exclusive = false;
  int64_t gpu_need_bytes = 0;  // the estimate
  double flops_per_step = 0;   // estimated; 0 while unknown
  int64_t steps_left = 0;
  // Where the checkpoint is from that its next attempt goes on from, of a run that may go anywhere:
  // "gpu:1". Empty: it starts from the beginning.
  std::string begun_on;
  std::string unmet;  // name of a run that must have ended first, or not have failed; empty: none
  StopCause stop_cause = StopCause::kNone;  // why the server took it from its devices, if it did
  std::string makes_room_for;               // name, or id once it is deleted, of the run it was for
};

// QUEUED runs by id. Without `all`, only those that may start at the wall time `now`.
absl::StatusOr<std::vector<QueuedRow>> ReadQueue(Database& database, bool all, int64_t now);

// A run that holds devices.
struct ActiveRow {
  std::string id;
  bool stopping = false;  // PAUSING or CANCELLING
  int64_t threads = 1;
  double flops_per_step = 0;
  int64_t steps_left = 0;
};
absl::StatusOr<std::vector<ActiveRow>> ReadActive(Database& database);

struct UserRow {
  std::string name;
  int64_t max_running = 0;
  int64_t max_gpu_memory_bytes = 0;
};
absl::StatusOr<std::vector<UserRow>> ReadUserLimits(Database& database);

// An attempt, as what it used and how fast it was.
struct UsedRow {
  int64_t attempt = 0;
  std::string run;
  std::string user;
  std::string device;               // what it held: cpu:0, or cpu:0,cpu:1
  int64_t start_time = 0;           // microseconds UTC
  std::optional<int64_t> end_time;  // absent: it has not ended
  double run_seconds = 0;           // 0 while unknown
  int64_t steps = 0;                // that it did
  double flops_per_step = 0;
};
// Attempts that ended at or after the wall time `since`, by their ends.
absl::StatusOr<std::vector<UsedRow>> ReadEnded(Database& database, int64_t since);
// Attempts that have not ended.
absl::StatusOr<std::vector<UsedRow>> ReadLiving(Database& database);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_QUEUE_H_
