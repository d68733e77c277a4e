#include "server/storage/queue.h"

#include <algorithm>
#include <map>
#include <utility>

#include "normlab/v1/run.pb.h"
#include "server/storage/dependencies.h"

namespace normlab::storage {
namespace {

// Settings, by their rows: no JSON is read.
#define NORMLAB_SETTING(name, otherwise)                                      \
  "coalesce((SELECT value FROM run_settings WHERE run_settings.name = '" name \
  "' AND "                                                                    \
  "run = runs.id), " otherwise ")"

double RealOr0(const Statement& row, int column) {
  return row.IsNull(column) ? 0 : row.Real(column);
}

#define NORMLAB_USED                                                               \
  "SELECT attempts.id, run, user_name, attempts.device, attempts.start_time, "     \
  "attempts.end_time, run_seconds, last_step - resumed_from_step, flops_per_step " \
  "FROM attempts JOIN runs ON runs.id = run"

// Of a run that may go anywhere and has been trained: the device of its latest attempt, if the next
// one goes on from what that one left.
#define NORMLAB_BEGUN_ON                                                                         \
  "CASE WHEN device = 'auto' AND step > 0 THEN (SELECT CASE WHEN abandoned = 0 AND "             \
  "(checkpoint_step > 0 OR resumed_from_step > 0) THEN attempts.device END FROM attempts WHERE " \
  "attempts.run = runs.id ORDER BY number DESC LIMIT 1) END"

// Of a run from before that was worked out: what it needs on a CPU, and CUDA's part.
#define NORMLAB_GPU_NEED                                                      \
  "CASE WHEN gpu_need_bytes > 0 THEN gpu_need_bytes ELSE 1073741824 + "       \
  "CAST(coalesce(memory_bytes, 0) AS INTEGER) END"

absl::StatusOr<std::vector<UsedRow>> UsedRows(Statement select) {
  std::vector<UsedRow> used;
  while (select.Step()) {
    UsedRow row;
    row.attempt = select.Integer(0);
    row.run = select.Text(1);
    row.user = select.Text(2);
    row.device = select.Text(3);
    row.start_time = select.Integer(4);
    row.end_time = select.MaybeInteger(5);
    row.run_seconds = RealOr0(select, 6);
    row.steps = std::max<int64_t>(0, select.Integer(7));
    row.flops_per_step = RealOr0(select, 8);
    used.push_back(std::move(row));
  }
  if (!select.status().ok()) return select.status();
  return used;
}

}  // namespace

absl::StatusOr<std::vector<QueuedRow>> ReadQueue(Database& database, bool all, int64_t now) {
  const auto unmet = UnmetDependencies(database);
  if (!unmet.ok()) return unmet.status();
  Statement select = database.Prepared(
      "SELECT id, display_name, user_name, priority, queue_rank, device, held, not_before, gpus, "
      "gpu_memory_bytes, exclusive, " NORMLAB_GPU_NEED ", flops_per_step, steps - step, "
      NORMLAB_SETTING("threads", "1") ", " NORMLAB_SETTING("preemptible", "0") ", " NORMLAB_BEGUN_ON
      ", stop_cause, "
      "CASE stop_cause WHEN 'preempted' THEN coalesce((SELECT other.display_name FROM runs AS other "
      "WHERE other.id = runs.stop_detail), stop_detail) END"
      " FROM runs WHERE state = ?1 AND (?2 OR (held = 0 AND coalesce(not_before, 0) <= ?3)) "
      "ORDER BY id");
  select.Bind(1, int64_t{v1::Run::STATE_QUEUED});
  select.Bind(2, int64_t{all});
  select.Bind(3, now);
  std::vector<QueuedRow> queue;
  while (select.Step()) {
    QueuedRow row;
    row.id = select.Text(0);
    const auto waits = unmet->find(row.id);
    if (waits != unmet->end()) {
      if (!all) continue;
      row.unmet = waits->second.front().name;
    }
    row.display_name = select.Text(1);
    row.user = select.Text(2);
    row.priority = select.Integer(3);
    row.rank = select.Integer(4);
    row.device = select.Text(5);
    row.held = select.Integer(6) != 0;
    row.not_before = select.MaybeInteger(7);
    row.gpus = select.Integer(8);
    row.gpu_memory_bytes = select.Integer(9);
    row.exclusive = select.Integer(10) != 0;
    row.gpu_need_bytes = select.Integer(11);
    row.flops_per_step = RealOr0(select, 12);
    row.steps_left = select.Integer(13);
    row.threads = select.Integer(14);
    row.preemptible = select.Integer(15) != 0;
    row.begun_on = select.Text(16);
    const absl::StatusOr<StopCause> cause = StopCauseOf(select.Text(17));
    if (!cause.ok()) return cause.status();
    row.stop_cause = *cause;
    if (row.stop_cause == StopCause::kPreempted) row.makes_room_for = select.Text(18);
    queue.push_back(std::move(row));
  }
  if (!select.status().ok()) return select.status();
  return queue;
}

absl::StatusOr<std::vector<ActiveRow>> ReadActive(Database& database) {
  Statement select =
      database.Prepared("SELECT id, state, flops_per_step, steps - step, " NORMLAB_SETTING(
          "threads", "1") " FROM runs WHERE state IN (?1, ?2, ?3, ?4)");
  select.Bind(1, int64_t{v1::Run::STATE_STARTING});
  select.Bind(2, int64_t{v1::Run::STATE_RUNNING});
  select.Bind(3, int64_t{v1::Run::STATE_PAUSING});
  select.Bind(4, int64_t{v1::Run::STATE_CANCELLING});
  std::vector<ActiveRow> active;
  while (select.Step()) {
    ActiveRow row;
    row.id = select.Text(0);
    const auto state = static_cast<v1::Run::State>(select.Integer(1));
    row.stopping = state == v1::Run::STATE_PAUSING || state == v1::Run::STATE_CANCELLING;
    row.flops_per_step = RealOr0(select, 2);
    row.steps_left = select.Integer(3);
    row.threads = select.Integer(4);
    active.push_back(std::move(row));
  }
  if (!select.status().ok()) return select.status();
  return active;
}

absl::StatusOr<std::vector<UserRow>> ReadUserLimits(Database& database) {
  Statement select = database.Prepared("SELECT name, max_running, max_gpu_memory_bytes FROM users");
  std::vector<UserRow> users;
  while (select.Step()) {
    users.push_back({select.Text(0), select.Integer(1), select.Integer(2)});
  }
  if (!select.status().ok()) return select.status();
  return users;
}

absl::StatusOr<std::vector<UsedRow>> ReadEnded(Database& database, int64_t since) {
  Statement select = database.Prepared(
      NORMLAB_USED " WHERE attempts.end_time >= ?1 ORDER BY attempts.end_time, attempts.id");
  select.Bind(1, since);
  return UsedRows(std::move(select));
}

absl::StatusOr<std::vector<UsedRow>> ReadLiving(Database& database) {
  return UsedRows(database.Prepared(NORMLAB_USED " WHERE attempts.end_time IS NULL"));
}

}  // namespace normlab::storage
