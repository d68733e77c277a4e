#include "server/storage/attempt_log.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/base/strings.h"
#include "server/base/subprocess.h"

namespace normlab::storage {
namespace {

using worker::v1::Record;

constexpr std::chrono::milliseconds kProgressPeriod(250);
constexpr std::chrono::seconds kRateWindow(5);

void UpdateSummary(const std::string& name, int64_t step, double value, v1::Summary& summary) {
  if (name == "validation_loss") summary.set_validation_loss(value);
  const bool is_loss = name == "loss";
  if (!is_loss && name != "gradient_norm") return;
  if (!std::isfinite(value) && !summary.has_first_bad_step()) summary.set_first_bad_step(step);
  if (is_loss) {
    summary.set_final_loss(value);
    if (std::isfinite(value) && (!summary.has_min_loss() || value < summary.min_loss())) {
      summary.set_min_loss(value);
    }
  } else {
    summary.set_final_gradient_norm(value);
    if (!std::isnan(value) &&
        (!summary.has_max_gradient_norm() || value > summary.max_gradient_norm())) {
      summary.set_max_gradient_norm(value);
    }
  }
}

// Steps done by an attempt and those it went on from.
int64_t StepsDone(const AttemptRow& row) { return std::max(row.last_step, row.resumed_from_step); }

// The name is joined to a path later on.
bool IsFileName(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name.front() != '.' &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

int64_t NanNumbers(const v1::Summary& summary) {
  // What is absent reads as 0.
  return (std::isnan(summary.final_loss()) ? kNanFinalLoss : 0) +
         (std::isnan(summary.final_gradient_norm()) ? kNanFinalGradientNorm : 0) +
         (std::isnan(summary.validation_loss()) ? kNanValidationLoss : 0);
}

void BindReal(Statement& statement, int parameter, double value) {
  if (std::isnan(value)) {
    statement.BindNull(parameter);
  } else {
    statement.Bind(parameter, value);
  }
}

void BindReal(Statement& statement, int parameter, bool present, double value) {
  if (present) {
    BindReal(statement, parameter, value);
  } else {
    statement.BindNull(parameter);
  }
}

}  // namespace

absl::Status AttemptLog::Append(WriteContext& context, int64_t attempt, uint64_t first_sequence,
                                const std::vector<std::string>& records) {
  const absl::Status status = AppendTo(context, attempt, first_sequence, records);
  // What it had begun to change in memory is undone in the database.
  if (!status.ok()) open_.erase(attempt);
  return status;
}

absl::Status AttemptLog::AppendTo(WriteContext& context, int64_t attempt, uint64_t first_sequence,
                                  const std::vector<std::string>& records) {
  absl::StatusOr<Open*> found = Find(context, attempt);
  if (!found.ok()) return found.status();
  Open& open = **found;
  if (open.row.end_time) return absl::FailedPreconditionError("this attempt has ended");
  if (first_sequence > open.row.persisted_sequence + 1) {
    return absl::OutOfRangeError(StrCat("records ", open.row.persisted_sequence + 1, " to ",
                                        first_sequence - 1, " are missing"));
  }
  Batch batch;
  for (size_t i = 0; i < records.size(); ++i) {
    const uint64_t sequence = first_sequence + i;
    if (sequence <= open.row.persisted_sequence) continue;
    Record record;
    if (!record.ParseFromString(records[i])) {
      return absl::InvalidArgumentError(StrCat("record ", sequence, " cannot be read"));
    }
    if (auto status = StoreRecord(context, open, record, batch); !status.ok()) return status;
    open.row.persisted_sequence = sequence;
  }
  if (absl::Status status = StorePoints(context, open, batch); !status.ok()) return status;
  if (absl::Status status = WriteTotals(context, open, batch); !status.ok()) return status;
  points_stored_.fetch_add(batch.rows, std::memory_order_relaxed);
  return PublishBatch(context, open, batch);
}

absl::StatusOr<AttemptLog::Open*> AttemptLog::Find(WriteContext& context, int64_t attempt) {
  if (auto found = open_.find(attempt); found != open_.end()) return &found->second;
  Open open;
  std::string run_id;
  {
    Statement select = context.database.Prepared("SELECT run FROM attempts WHERE id = ?1");
    select.Bind(1, attempt);
    if (!select.Step()) {
      return select.status().ok() ? absl::NotFoundError("there is no such attempt")
                                  : select.status();
    }
    run_id = select.Text(0);
  }
  absl::StatusOr<std::vector<AttemptRow>> rows = ReadAttempts(context.database, run_id);
  if (!rows.ok()) return rows.status();
  for (AttemptRow& row : *rows) {
    if (row.id == attempt) open.row = std::move(row);
  }
  absl::StatusOr<v1::Run> run = ReadRun(context.database, run_id);
  if (!run.ok()) return run.status();
  open.total_steps = run->progress().steps();
  open.summary = run->summary();
  Statement select =
      context.database.Prepared("SELECT id, name FROM series WHERE attempt = ?1 ORDER BY position");
  select.Bind(1, attempt);
  while (select.Step()) open.series.push_back({select.Integer(0), select.Text(1), {}});
  if (!select.status().ok()) return select.status();
  absl::StatusOr<Journal> journal = Journal::Restore(context.database, attempt);
  if (!journal.ok()) return journal.status();
  open.journal = *journal;
  return &open_.emplace(attempt, std::move(open)).first->second;
}

absl::Status AttemptLog::StoreRecord(WriteContext& context, Open& open, const Record& record,
                                     Batch& batch) {
  switch (record.record_case()) {
    case Record::kModel:
      open.summary.set_parameter_count(record.model().parameter_count());
      open.summary.set_instruction_set(record.model().instruction_set());
      batch.snapshot_changed = true;
      return absl::OkStatus();
    case Record::kSeries:
      return DeclareSeries(context, open, record.series());
    case Record::kStep:
      return TakeStep(open, record.step(), batch);
    case Record::kFinished:
      open.row.outcome = record.finished().outcome();
      open.row.outcome_reason = record.finished().reason();
      return absl::OkStatus();
    case Record::kCheckpoint:
      return NoteCheckpoint(record.checkpoint(), open.row, batch);
    case Record::RECORD_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a record of an unknown kind");
}

absl::Status AttemptLog::NoteCheckpoint(const worker::v1::CheckpointWritten& checkpoint,
                                        AttemptRow& row, Batch& batch) {
  if (checkpoint.step() < 1 || checkpoint.step() > StepsDone(row)) {
    return absl::InvalidArgumentError(
        StrCat("a checkpoint of step ", checkpoint.step(), " after step ", StepsDone(row)));
  }
  if (!IsFileName(checkpoint.file())) {
    return absl::InvalidArgumentError("the file of a checkpoint needs a plain name");
  }
  if (row.checkpoint_step != checkpoint.step()) {
    row.earlier_checkpoint_step = row.checkpoint_step;
    row.earlier_checkpoint_file = row.checkpoint_file;
  }
  row.checkpoint_step = checkpoint.step();
  row.checkpoint_file = checkpoint.file();
  row.checkpoint_bytes = checkpoint.bytes();
  batch.snapshot_changed = true;
  return absl::OkStatus();
}

absl::Status AttemptLog::DeclareSeries(WriteContext& context, Open& open,
                                       const worker::v1::SeriesDeclared& declared) {
  for (const std::string& name : declared.names()) {
    if (name.empty() || name.size() > 300) {
      return absl::InvalidArgumentError("a series name must have 1 to 300 bytes");
    }
    Statement insert = context.database.Prepared(
        "INSERT INTO series (attempt, position, name) VALUES (?1, ?2, ?3) RETURNING id");
    insert.Bind(1, open.row.id);
    insert.Bind(2, static_cast<int64_t>(open.series.size()));
    insert.Bind(3, name);
    if (!insert.Step()) {
      return absl::IsAlreadyExists(insert.status())
                 ? absl::InvalidArgumentError(StrCat("series ", name, " is declared twice"))
                 : insert.status();
    }
    open.series.push_back({insert.Integer(0), name, OpenLevels()});
    if (absl::Status status = insert.Run(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status AttemptLog::TakeStep(Open& open, const worker::v1::Step& step, Batch& batch) {
  if (step.series_size() != step.values_size()) {
    return absl::InvalidArgumentError("a step with a different number of series and values");
  }
  if (step.step() <= StepsDone(open.row)) {
    return absl::InvalidArgumentError(
        StrCat("step ", step.step(), " after step ", StepsDone(open.row)));
  }
  for (int i = 0; i < step.series_size(); ++i) {
    const uint32_t index = step.series(i);
    if (index >= open.series.size()) {
      return absl::InvalidArgumentError(StrCat("series ", index, " was never declared"));
    }
    v1::Column& column = batch.columns[index];
    column.add_steps(step.step());
    column.add_values(step.values(i));
    UpdateSummary(open.series[index].name, step.step(), step.values(i), open.summary);
  }
  open.row.last_step = step.step();
  batch.rows += static_cast<uint64_t>(step.series_size());
  batch.has_steps = true;
  return absl::OkStatus();
}

// Series by series, so that the table's neighbours are written one after another: with thousands of
// series each has a page of its own, which is then gone to once a batch and not once a step.
absl::Status AttemptLog::StorePoints(WriteContext& context, Open& open, const Batch& batch) {
  for (const auto& [index, column] : batch.columns) {
    for (int i = 0; i < column.steps_size(); ++i) {
      const domain::Point point = {column.steps(i), column.values(i)};
      if (auto status = StorePoint(context, open.series[index], point); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status AttemptLog::StorePoint(WriteContext& context, OpenSeries& series,
                                    domain::Point point) {
  if (!series.levels) {
    absl::StatusOr<OpenLevels> levels = OpenLevels::Restore(context.database, series.id);
    if (!levels.ok()) return levels.status();
    series.levels = *std::move(levels);
  }
  Statement insert =
      context.database.Prepared("INSERT INTO points (series, step, value) VALUES (?1, ?2, ?3)");
  insert.Bind(1, series.id);
  insert.Bind(2, point.step);
  BindReal(insert, 3, point.value);
  if (absl::Status status = insert.Run(); !status.ok()) {
    return absl::IsAlreadyExists(status)
               ? absl::InvalidArgumentError(
                     StrCat("series ", series.name, " comes twice in step ", point.step))
               : status;
  }
  return series.levels->Add(context.database, series.id, point);
}

absl::Status AttemptLog::WriteTotals(WriteContext& context, Open& open, const Batch& batch) {
  Statement attempt = context.database.Prepared(
      "UPDATE attempts SET last_step = ?2, persisted_sequence = ?3, outcome = ?4, "
      "outcome_reason = ?5, checkpoint_step = ?6, checkpoint_file = ?7, checkpoint_bytes = ?8, "
      "earlier_checkpoint_step = ?9, earlier_checkpoint_file = ?10, "
      // Of one that is lost later, this is how long it is known to have run.
      "run_seconds = iif(shepherd_boot_id = ?11, max(0, ?12 - began), "
      "run_seconds) WHERE id = ?1");
  attempt.Bind(1, open.row.id);
  attempt.Bind(2, open.row.last_step);
  attempt.Bind(3, static_cast<int64_t>(open.row.persisted_sequence));
  attempt.Bind(4, int64_t{open.row.outcome});
  attempt.Bind(5, open.row.outcome_reason);
  attempt.Bind(6, open.row.checkpoint_step);
  attempt.Bind(7, open.row.checkpoint_file);
  attempt.Bind(8, open.row.checkpoint_bytes);
  attempt.Bind(9, open.row.earlier_checkpoint_step);
  attempt.Bind(10, open.row.earlier_checkpoint_file);
  attempt.Bind(11, BootId());
  attempt.Bind(12, BootSeconds());
  if (absl::Status status = attempt.Run(); !status.ok()) return status;
  const v1::Summary& summary = open.summary;
  Statement run = context.database.Prepared(
      "UPDATE runs SET step = ?2, final_loss = ?3, min_loss = ?4, final_gradient_norm = ?5, "
      "max_gradient_norm = ?6, first_bad_step = ?7, parameter_count = ?8, flops_per_step = ?9, "
      "instruction_set = ?10, changed_sequence = iif(?11, ?12, changed_sequence), "
      "memory_bytes = ?13, validation_loss = ?14, nan_numbers = ?15 WHERE id = ?1");
  run.Bind(1, open.row.run);
  run.Bind(2, StepsDone(open.row));
  BindReal(run, 3, summary.has_final_loss(), summary.final_loss());
  BindReal(run, 4, summary.has_min_loss(), summary.min_loss());
  BindReal(run, 5, summary.has_final_gradient_norm(), summary.final_gradient_norm());
  BindReal(run, 6, summary.has_max_gradient_norm(), summary.max_gradient_norm());
  run.Bind(7, summary.has_first_bad_step() ? std::optional<int64_t>(summary.first_bad_step())
                                           : std::nullopt);
  run.Bind(8, summary.has_parameter_count() ? std::optional<int64_t>(summary.parameter_count())
                                            : std::nullopt);
  BindReal(run, 9, summary.has_flops_per_step(), summary.flops_per_step());
  run.Bind(10, summary.instruction_set());
  run.Bind(11, int64_t{batch.snapshot_changed});
  run.Bind(12, static_cast<int64_t>(context.sequence));
  BindReal(run, 13, summary.has_memory_bytes(), summary.memory_bytes());
  BindReal(run, 14, summary.has_validation_loss(), summary.validation_loss());
  run.Bind(15, NanNumbers(summary));
  if (absl::Status status = run.Run(); !status.ok()) return status;
  if (!batch.has_steps) return absl::OkStatus();
  return open.journal.Note(context.database, open.row.id, context.sequence, open.row.last_step);
}

absl::Status AttemptLog::PublishBatch(WriteContext& context, Open& open, Batch& batch) {
  if (batch.snapshot_changed) {
    absl::StatusOr<v1::Run> run = ReadRun(context.database, open.row.run);
    if (!run.ok()) return run.status();
    v1::WatchRunsResponse snapshot;
    *snapshot.mutable_run() = *std::move(run);
    context.Publish(open.row.run, std::move(snapshot));
  }
  if (!batch.has_steps) return absl::OkStatus();
  PublishProgress(context, open);
  v1::WatchRunsResponse message;
  v1::Points& points = *message.mutable_points();
  points.set_run(open.row.run);
  points.set_attempt(open.row.number);
  for (auto& [series, column] : batch.columns) {
    column.set_name(open.series[series].name);
    *points.add_columns() = std::move(column);
  }
  // Last, because it is the one that must not be seen twice: the token comes with a write's last
  // event.
  context.Publish(open.row.run, std::move(message));
  return absl::OkStatus();
}

void AttemptLog::PublishProgress(WriteContext& context, Open& open) {
  const auto now = clock_.Now();
  open.recent.emplace_back(now, open.row.last_step);
  if (now - open.last_progress < kProgressPeriod) return;
  open.last_progress = now;
  v1::WatchRunsResponse progress;
  progress.mutable_progress()->set_run(open.row.run);
  *progress.mutable_progress()->mutable_progress() = MeasureProgress(open);
  *progress.mutable_progress()->mutable_summary() = open.summary;
  context.Publish(open.row.run, std::move(progress));
}

v1::Progress AttemptLog::MeasureProgress(Open& open) {
  v1::Progress progress;
  progress.set_step(open.row.last_step);
  progress.set_steps(open.total_steps);
  while (open.recent.size() > 2 &&
         open.recent.back().first - open.recent.front().first > kRateWindow) {
    open.recent.pop_front();
  }
  const std::chrono::duration<double> time = open.recent.back().first - open.recent.front().first;
  const int64_t steps = open.recent.back().second - open.recent.front().second;
  if (time.count() > 0 && steps > 0) {
    progress.set_steps_per_second(static_cast<double>(steps) / time.count());
    progress.set_remaining_seconds(static_cast<double>(open.total_steps - open.row.last_step) /
                                   progress.steps_per_second());
  }
  return progress;
}

}  // namespace normlab::storage
