#include "server/storage/run_deletion.h"

#include <utility>

#include "server/base/strings.h"
#include "server/domain/run_state.h"
#include "server/storage/run_settings.h"

namespace normlab::storage {
namespace {

// Runs a statement whose only parameter is the run.
absl::Status Execute(Database& database, std::string_view sql, std::string_view run) {
  Statement statement = database.Prepared(sql);
  statement.Bind(1, run);
  return statement.Run();
}

// All rows of a run but its points, those that refer to others first.
absl::Status DeleteRows(Database& database, const std::string& run) {
  for (const std::string_view sql : {
           "INSERT INTO garbage (series) SELECT series.id FROM series "
           "JOIN attempts ON attempts.id = series.attempt WHERE attempts.run = ?1",
           "DELETE FROM series WHERE attempt IN (SELECT id FROM attempts WHERE run = ?1)",
           "DELETE FROM journal WHERE attempt IN (SELECT id FROM attempts WHERE run = ?1)",
           "DELETE FROM journal_pages WHERE attempt IN (SELECT id FROM attempts WHERE run = ?1)",
           "UPDATE attempts SET resumed_from = NULL WHERE run = ?1",
           "DELETE FROM attempts WHERE run = ?1",
           "DELETE FROM run_labels WHERE run = ?1",
           "DELETE FROM run_dependencies WHERE run = ?1",
           "DELETE FROM early_stops WHERE run = ?1",
           "DELETE FROM run_specs WHERE run = ?1",
           "DELETE FROM runs WHERE id = ?1",
       }) {
    if (absl::Status status = Execute(database, sql, run); !status.ok()) return status;
  }
  return DeleteRunSettings(database, run);
}

// Deletes the first `rows` rows that a series has in `points`, or in `levels`. False when it has
// none left.
absl::StatusOr<bool> DeletePoints(Database& database, int64_t series, int64_t rows) {
  std::optional<int64_t> bound;
  {
    Statement select = database.Prepared(
        "SELECT step FROM points WHERE series = ?1 ORDER BY step LIMIT 1 OFFSET ?2");
    select.Bind(1, series);
    select.Bind(2, rows);
    if (select.Step()) bound = select.Integer(0);
    if (!select.status().ok()) return select.status();
  }
  Statement erase =
      database.Prepared("DELETE FROM points WHERE series = ?1 AND (?2 IS NULL OR step < ?2)");
  erase.Bind(1, series);
  erase.Bind(2, bound);
  if (absl::Status status = erase.Run(); !status.ok()) return status;
  return bound.has_value();
}

absl::StatusOr<bool> DeleteBlocks(Database& database, int64_t series, int64_t rows) {
  Statement erase = database.Prepared(
      "DELETE FROM levels WHERE (series, level, first_step) IN (SELECT series, level, first_step "
      "FROM levels WHERE series = ?1 ORDER BY level, first_step LIMIT ?2) RETURNING 1");
  erase.Bind(1, series);
  erase.Bind(2, rows);
  int64_t deleted = 0;
  while (erase.Step()) ++deleted;
  if (!erase.status().ok()) return erase.status();
  return deleted == rows;
}

}  // namespace

absl::Status MayDelete(const v1::Run& run) {
  if (!domain::IsTerminal(run.state())) {
    return absl::FailedPreconditionError(
        StrCat("run ", run.id(), " is ", domain::StateWord(run.state()), "; cancel it first"));
  }
  if (run.pinned()) {
    return absl::FailedPreconditionError(StrCat("run ", run.id(), " is pinned; unpin it first"));
  }
  return absl::OkStatus();
}

absl::Status DeleteRun(WriteContext& context, const std::string& run) {
  const absl::StatusOr<v1::Run> read = ReadRun(context.database, run);
  if (!read.ok()) return read.status();
  if (absl::Status status = MayDelete(*read); !status.ok()) return status;
  if (absl::Status status = DeleteRows(context.database, run); !status.ok()) return status;
  {
    Statement insert =
        context.database.Prepared("INSERT INTO deleted_runs (sequence, run) VALUES (?1, ?2)");
    insert.Bind(1, static_cast<int64_t>(context.sequence));
    insert.Bind(2, run);
    if (absl::Status status = insert.Run(); !status.ok()) return status;
  }
  v1::WatchRunsResponse deleted;
  deleted.mutable_deleted()->set_run(run);
  context.Publish(run, std::move(deleted));
  return absl::OkStatus();
}

absl::Status ForgetCheckpoints(WriteContext& context, const std::string& run) {
  const absl::StatusOr<v1::Run> read = ReadRun(context.database, run);
  if (!read.ok()) return read.status();
  if (absl::Status status = MayDelete(*read); !status.ok()) return status;
  return Execute(context.database,
                 "UPDATE attempts SET checkpoint_step = 0, checkpoint_file = '', "
                 "checkpoint_bytes = 0, earlier_checkpoint_step = 0, earlier_checkpoint_file = '' "
                 "WHERE run = ?1",
                 run);
}

absl::StatusOr<bool> SweepGarbage(Database& database, int64_t rows) {
  int64_t series = 0;
  {
    Statement select = database.Prepared("SELECT min(series) FROM garbage");
    if (!select.Step()) return select.status();
    if (select.IsNull(0)) return false;
    series = select.Integer(0);
  }
  for (const auto erase : {DeletePoints, DeleteBlocks}) {
    absl::StatusOr<bool> more = erase(database, series, rows);
    if (!more.ok() || *more) return more;
  }
  Statement done = database.Prepared("DELETE FROM garbage WHERE series = ?1");
  done.Bind(1, series);
  if (absl::Status status = done.Run(); !status.ok()) return status;
  return true;
}

absl::StatusOr<int64_t> CountPoints(Database& database, std::string_view run) {
  Statement select = database.Prepared(
      "SELECT count(*) FROM attempts JOIN series ON series.attempt = attempts.id "
      "JOIN points ON points.series = series.id WHERE attempts.run = ?1");
  select.Bind(1, run);
  if (!select.Step()) return select.status();
  return select.Integer(0);
}

absl::StatusOr<std::vector<ChangedRun>> RunsDeletedSince(Database& database,
                                                         const ChangedRun& place, int limit) {
  Statement select = database.Prepared(
      "SELECT run, sequence FROM deleted_runs WHERE sequence >= ?1 "
      "AND (sequence > ?1 OR (?2 <> '' AND run > ?2)) ORDER BY sequence, run LIMIT ?3");
  select.Bind(1, static_cast<int64_t>(place.sequence));
  select.Bind(2, place.id);
  select.Bind(3, int64_t{limit});
  std::vector<ChangedRun> deleted;
  while (select.Step()) {
    deleted.push_back({select.Text(0), static_cast<uint64_t>(select.Integer(1))});
  }
  if (!select.status().ok()) return select.status();
  return deleted;
}

absl::StatusOr<bool> WasDeleted(Database& database, std::string_view run) {
  Statement select = database.Prepared("SELECT 1 FROM deleted_runs WHERE run = ?1");
  select.Bind(1, run);
  const bool found = select.Step();
  if (!select.status().ok()) return select.status();
  return found;
}

}  // namespace normlab::storage
