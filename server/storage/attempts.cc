#include "server/storage/attempts.h"

#include <google/protobuf/util/time_util.h>

#include <utility>

#include "server/base/strings.h"
#include "server/base/subprocess.h"
#include "server/storage/journal.h"
#include "server/storage/summary.h"

namespace normlab::storage {
namespace {

using google::protobuf::util::TimeUtil;

#define NORMLAB_ATTEMPT_COLUMNS                                                                  \
  "id, run, number, device, directory, token_sha256, resumed_from_step, start_time, end_time, "  \
  "last_step, persisted_sequence, outcome, outcome_reason, shepherd_pid, shepherd_start_ticks, " \
  "shepherd_boot_id, started_sequence, checkpoint_step, checkpoint_file, checkpoint_bytes, "     \
  "earlier_checkpoint_step, earlier_checkpoint_file, run_seconds, end_reason, interrupted, "     \
  "abandoned, resumed_from_file, gpu_memory_bytes, exclusive, began, "                           \
  "(SELECT number FROM attempts AS origin WHERE origin.id = attempts.resumed_from)"

AttemptRow AttemptOf(const Statement& row) {
  AttemptRow attempt;
  attempt.id = row.Integer(0);
  attempt.run = row.Text(1);
  attempt.number = static_cast<int32_t>(row.Integer(2));
  attempt.device = row.Text(3);
  attempt.directory = row.Text(4);
  attempt.token_sha256 = row.Text(5);
  attempt.resumed_from_step = row.Integer(6);
  attempt.start_time = row.Integer(7);
  attempt.end_time = row.MaybeInteger(8);
  attempt.last_step = row.Integer(9);
  attempt.persisted_sequence = static_cast<uint64_t>(row.Integer(10));
  attempt.outcome = static_cast<int32_t>(row.Integer(11));
  attempt.outcome_reason = row.Text(12);
  attempt.shepherd_pid = row.MaybeInteger(13);
  attempt.shepherd_start_ticks = row.Integer(14);
  attempt.shepherd_boot_id = row.Text(15);
  attempt.started_sequence = static_cast<uint64_t>(row.Integer(16));
  attempt.checkpoint_step = row.Integer(17);
  attempt.checkpoint_file = row.Text(18);
  attempt.checkpoint_bytes = row.Integer(19);
  attempt.earlier_checkpoint_step = row.Integer(20);
  attempt.earlier_checkpoint_file = row.Text(21);
  attempt.run_seconds = row.IsNull(22) ? 0 : row.Real(22);
  attempt.end_reason = row.Text(23);
  attempt.interrupted = row.Integer(24) != 0;
  attempt.abandoned = row.Integer(25) != 0;
  attempt.resumed_from_file = row.Text(26);
  attempt.gpu_memory_bytes = row.Integer(27);
  attempt.exclusive = row.Integer(28) != 0;
  attempt.began = row.Real(29);
  attempt.resumed_from_attempt = static_cast<int32_t>(row.MaybeInteger(30).value_or(0));
  return attempt;
}

// Id of the attempt with that number; absent for 0.
absl::StatusOr<std::optional<int64_t>> OriginId(const std::vector<AttemptRow>& earlier,
                                                int32_t number) {
  if (number == 0) return std::optional<int64_t>();
  for (const AttemptRow& row : earlier) {
    if (row.number == number) return std::optional<int64_t>(row.id);
  }
  return absl::InvalidArgumentError(StrCat("there is no attempt ", number, " to go on from"));
}

absl::Status SetFlag(WriteContext& context, const char* sql, int64_t attempt, bool value) {
  Statement update = context.database.Prepared(sql);
  update.Bind(1, attempt);
  update.Bind(2, int64_t{value});
  return update.Run();
}

}  // namespace

absl::StatusOr<AttemptRow> InsertAttempt(WriteContext& context, AttemptRow attempt) {
  absl::StatusOr<std::vector<AttemptRow>> attempts = ReadAttempts(context.database, attempt.run);
  if (!attempts.ok()) return attempts.status();
  const absl::StatusOr<std::optional<int64_t>> origin =
      OriginId(*attempts, attempt.resumed_from_attempt);
  if (!origin.ok()) return origin.status();
  if (!origin->has_value() && attempt.resumed_from_step > 0) {
    return absl::InvalidArgumentError("an attempt that goes on from a step of no attempt");
  }
  attempt.number = attempts->empty() ? 1 : attempts->back().number + 1;
  attempt.start_time = context.wall_micros;
  attempt.began = BootSeconds();
  attempt.shepherd_boot_id = BootId();
  attempt.started_sequence = context.sequence;
  attempt.directory = StrCat("attempts/", attempt.run, "-", attempt.number);
  Statement insert = context.database.Prepared(
      "INSERT INTO attempts (run, number, device, directory, token_sha256, resumed_from_step, "
      "start_time, started_sequence, resumed_from, resumed_from_file, gpu_memory_bytes, "
      "exclusive, began, shepherd_boot_id) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) RETURNING id");
  insert.Bind(1, attempt.run);
  insert.Bind(2, int64_t{attempt.number});
  insert.Bind(3, attempt.device);
  insert.Bind(4, attempt.directory);
  insert.Bind(5, attempt.token_sha256);
  insert.Bind(6, attempt.resumed_from_step);
  insert.Bind(7, attempt.start_time);
  insert.Bind(8, static_cast<int64_t>(attempt.started_sequence));
  insert.Bind(9, *origin);
  insert.Bind(10, attempt.resumed_from_file);
  insert.Bind(11, attempt.gpu_memory_bytes);
  insert.Bind(12, int64_t{attempt.exclusive});
  insert.Bind(13, attempt.began);
  insert.Bind(14, attempt.shepherd_boot_id);
  if (!insert.Step()) return insert.status();
  attempt.id = insert.Integer(0);
  if (absl::Status status = insert.Run(); !status.ok()) return status;
  attempts->push_back(attempt);
  if (absl::Status status = RewindRun(context, *attempts); !status.ok()) return status;
  return attempt;
}

absl::Status SetShepherd(WriteContext& context, const AttemptRow& attempt) {
  Statement update = context.database.Prepared(
      "UPDATE attempts SET shepherd_pid = ?2, shepherd_start_ticks = ?3, shepherd_boot_id = ?4 "
      "WHERE id = ?1");
  update.Bind(1, attempt.id);
  update.Bind(2, attempt.shepherd_pid);
  update.Bind(3, attempt.shepherd_start_ticks);
  update.Bind(4, attempt.shepherd_boot_id);
  return update.Run();
}

absl::Status EndAttempt(WriteContext& context, int64_t attempt, const AttemptEndRow& end) {
  Statement update = context.database.Prepared(
      "UPDATE attempts SET end_time = ?2, max_rss_bytes = ?3, cpu_seconds = ?4, "
      "run_seconds = coalesce(?5, run_seconds), end_reason = ?6, interrupted = ?7, abandoned = ?8 "
      "WHERE id = ?1");
  update.Bind(1, attempt);
  update.Bind(2, context.wall_micros);
  update.Bind(3, end.max_rss_bytes);
  update.Bind(4, end.cpu_seconds);
  update.Bind(5, end.run_seconds);
  update.Bind(6, end.reason);
  update.Bind(7, int64_t{end.interrupted});
  update.Bind(8, int64_t{end.abandoned});
  if (absl::Status status = update.Run(); !status.ok()) return status;
  return PackJournal(context.database, attempt);
}

absl::Status SetAbandoned(WriteContext& context, int64_t attempt, bool abandoned) {
  return SetFlag(context, "UPDATE attempts SET abandoned = ?2 WHERE id = ?1", attempt, abandoned);
}

absl::Status SetInterrupted(WriteContext& context, int64_t attempt, bool interrupted) {
  return SetFlag(context, "UPDATE attempts SET interrupted = ?2 WHERE id = ?1", attempt,
                 interrupted);
}

absl::StatusOr<std::vector<AttemptRow>> ReadAttempts(Database& database, std::string_view run) {
  Statement select = database.Prepared("SELECT " NORMLAB_ATTEMPT_COLUMNS
                                       " FROM attempts WHERE run = ?1 ORDER BY number");
  select.Bind(1, run);
  std::vector<AttemptRow> attempts;
  while (select.Step()) attempts.push_back(AttemptOf(select));
  if (!select.status().ok()) return select.status();
  return attempts;
}

absl::StatusOr<AttemptRow> ReadLatestAttempt(Database& database, std::string_view run) {
  absl::StatusOr<std::vector<AttemptRow>> attempts = ReadAttempts(database, run);
  if (!attempts.ok()) return attempts.status();
  if (attempts->empty()) {
    return absl::NotFoundError(StrCat("run ", run, " has no attempt yet"));
  }
  return attempts->back();
}

v1::Attempt AttemptMessage(const AttemptRow& row) {
  v1::Attempt attempt;
  attempt.set_number(row.number);
  attempt.set_device(row.device);
  attempt.set_resumed_from_attempt(row.resumed_from_attempt);
  attempt.set_resumed_from_step(row.resumed_from_step);
  *attempt.mutable_start_time() = TimeUtil::MicrosecondsToTimestamp(row.start_time);
  if (row.end_time) {
    *attempt.mutable_end_time() = TimeUtil::MicrosecondsToTimestamp(*row.end_time);
  }
  attempt.set_last_step(row.last_step);
  attempt.set_checkpoint_step(row.checkpoint_step);
  attempt.set_run_seconds(row.run_seconds);
  attempt.set_end_reason(row.end_reason);
  return attempt;
}

}  // namespace normlab::storage
