#include "server/storage/runs.h"

#include <google/protobuf/util/time_util.h>

#include <deque>
#include <limits>
#include <utility>

#include "server/base/strings.h"
#include "server/domain/model_size.h"
#include "server/domain/priority.h"
#include "server/domain/run_state.h"
#include "server/storage/dependencies.h"
#include "server/storage/run_settings.h"
#include "server/storage/spec_json.h"

namespace normlab::storage {
namespace {

using google::protobuf::util::TimeUtil;

#define NORMLAB_RUN_COLUMNS                                                                     \
  "id, display_name, experiment, user_name, spec, effective_spec, device, state, wait_reason, " \
  "end_reason, exit_code, exit_signal, create_time, start_time, end_time, step, steps, "        \
  "final_loss, min_loss, final_gradient_norm, max_gradient_norm, first_bad_step, "              \
  "parameter_count, flops_per_step, instruction_set, colour, memory_bytes, validation_loss, "   \
  "nan_numbers, notes, pinned, archived, priority, held, gpus, gpu_memory_bytes, exclusive"

#define NORMLAB_RUNS "runs JOIN run_specs ON run_specs.run = runs.id"

google::protobuf::Timestamp Time(int64_t micros) {
  return TimeUtil::MicrosecondsToTimestamp(micros);
}

std::optional<int64_t> Micros(bool present, const google::protobuf::Timestamp& time) {
  if (!present) return std::nullopt;
  return TimeUtil::TimestampToMicroseconds(time);
}

void ReadSummary(const Statement& row, v1::Run& run) {
  v1::Summary& summary = *run.mutable_summary();
  if (!row.IsNull(17)) summary.set_final_loss(row.Real(17));
  if (!row.IsNull(18)) summary.set_min_loss(row.Real(18));
  if (!row.IsNull(19)) summary.set_final_gradient_norm(row.Real(19));
  if (!row.IsNull(20)) summary.set_max_gradient_norm(row.Real(20));
  if (!row.IsNull(21)) summary.set_first_bad_step(row.Integer(21));
  if (!row.IsNull(22)) summary.set_parameter_count(row.Integer(22));
  if (!row.IsNull(23)) summary.set_flops_per_step(row.Real(23));
  summary.set_instruction_set(row.Text(24));
  if (!row.IsNull(26)) summary.set_memory_bytes(row.Real(26));
  if (!row.IsNull(27)) summary.set_validation_loss(row.Real(27));
  // A NaN is stored as NULL, like a number that is not there; this tells the two apart.
  const int64_t nan_numbers = row.Integer(28);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if ((nan_numbers & kNanFinalLoss) != 0) summary.set_final_loss(kNan);
  if ((nan_numbers & kNanFinalGradientNorm) != 0) summary.set_final_gradient_norm(kNan);
  if ((nan_numbers & kNanValidationLoss) != 0) summary.set_validation_loss(kNan);
}

absl::StatusOr<v1::Run> RunOf(const Statement& row) {
  v1::Run run;
  run.set_id(row.Text(0));
  run.set_display_name(row.Text(1));
  run.set_experiment(row.Text(2));
  run.set_user(row.Text(3));
  if (auto status = SpecFromJson(row.Text(4), *run.mutable_spec()); !status.ok()) return status;
  if (auto status = SpecFromJson(row.Text(5), *run.mutable_effective_spec()); !status.ok()) {
    return status;
  }
  run.set_device(row.Text(6));
  run.set_state(static_cast<v1::Run::State>(row.Integer(7)));
  run.set_wait_reason(row.Text(8));
  run.set_end_reason(row.Text(9));
  if (!row.IsNull(10)) run.set_exit_code(static_cast<int32_t>(row.Integer(10)));
  if (!row.IsNull(11)) run.set_exit_signal(static_cast<int32_t>(row.Integer(11)));
  *run.mutable_create_time() = Time(row.Integer(12));
  if (!row.IsNull(13)) *run.mutable_start_time() = Time(row.Integer(13));
  if (!row.IsNull(14)) *run.mutable_end_time() = Time(row.Integer(14));
  run.mutable_progress()->set_step(row.Integer(15));
  run.mutable_progress()->set_steps(row.Integer(16));
  run.set_colour(row.Text(25));
  run.set_notes(row.Text(29));
  run.set_pinned(row.Integer(30) != 0);
  run.set_archived(row.Integer(31) != 0);
  run.set_priority(std::string(domain::PriorityName(row.Integer(32))));
  run.set_held(row.Integer(33) != 0);
  v1::Resources& resources = *run.mutable_resources();
  resources.set_gpus(static_cast<int32_t>(row.Integer(34)));
  resources.set_gpu_memory_bytes(row.Integer(35));
  resources.set_exclusive(row.Integer(36) != 0);
  ReadSummary(row, run);
  return run;
}

absl::Status AddLabels(Database& database, v1::Run& run) {
  Statement select =
      database.Prepared("SELECT label FROM run_labels WHERE run = ?1 ORDER BY label");
  select.Bind(1, run.id());
  while (select.Step()) run.add_labels(select.Text(0));
  return select.status();
}

absl::Status AddDependencies(Database& database, v1::Run& run) {
  Statement select = database.Prepared(
      "SELECT after, condition FROM run_dependencies WHERE run = ?1 ORDER BY after");
  select.Bind(1, run.id());
  while (select.Step()) {
    v1::Dependency& dependency = *run.add_after();
    dependency.set_run(select.Text(0));
    dependency.set_condition(select.Text(1));
  }
  return select.status();
}

// What has tables of its own: labels, dependencies, attempts.
absl::Status AddRest(Database& database, v1::Run& run) {
  if (absl::Status status = AddLabels(database, run); !status.ok()) return status;
  if (absl::Status status = AddDependencies(database, run); !status.ok()) return status;
  absl::StatusOr<std::vector<AttemptRow>> attempts = ReadAttempts(database, run.id());
  if (!attempts.ok()) return attempts.status();
  double run_seconds = 0;
  for (const AttemptRow& row : *attempts) {
    *run.add_attempts() = AttemptMessage(row);
    run_seconds += row.run_seconds;
  }
  run.set_run_seconds(run_seconds);
  return absl::OkStatus();
}

void PublishSnapshot(WriteContext& context, const v1::Run& run) {
  v1::WatchRunsResponse snapshot;
  *snapshot.mutable_run() = run;
  context.Publish(run.id(), std::move(snapshot));
  if (!domain::IsTerminal(run.state())) return;
  v1::WatchRunsResponse end;
  *end.mutable_end()->mutable_run() = run;
  context.Publish(run.id(), std::move(end));
}

absl::Status WriteState(WriteContext& context, const v1::Run& run) {
  Statement update = context.database.Prepared(
      "UPDATE runs SET state = ?2, wait_reason = ?3, end_reason = ?4, exit_code = ?5, "
      "exit_signal = ?6, start_time = ?7, end_time = ?8, display_name = ?9, "
      "changed_sequence = ?10 WHERE id = ?1");
  update.Bind(1, run.id());
  update.Bind(2, int64_t{run.state()});
  update.Bind(3, run.wait_reason());
  update.Bind(4, run.end_reason());
  update.Bind(5, run.has_exit_code() ? std::optional<int64_t>(run.exit_code()) : std::nullopt);
  update.Bind(6, run.has_exit_signal() ? std::optional<int64_t>(run.exit_signal()) : std::nullopt);
  update.Bind(7, Micros(run.has_start_time(), run.start_time()));
  update.Bind(8, Micros(run.has_end_time(), run.end_time()));
  update.Bind(9, run.display_name());
  update.Bind(10, static_cast<int64_t>(context.sequence));
  return update.Run();
}

// Returns the run as it now is.
absl::StatusOr<v1::Run> UpdateOne(WriteContext& context, const std::string& id,
                                  const std::function<absl::Status(v1::Run&)>& change) {
  absl::StatusOr<v1::Run> run = ReadRun(context.database, id);
  if (!run.ok()) return run;
  const v1::Run::State before = run->state();
  if (absl::Status status = change(*run); !status.ok()) return status;
  if (run->state() != before && !domain::MayFollow(before, run->state())) {
    return absl::FailedPreconditionError(StrCat("run ", id, " is ", domain::StateWord(before),
                                                " and cannot become ",
                                                domain::StateWord(run->state())));
  }
  if (domain::IsTerminal(run->state()) && !run->has_end_time()) {
    *run->mutable_end_time() = Time(context.wall_micros);
  }
  if (absl::Status status = WriteState(context, *run); !status.ok()) return status;
  PublishSnapshot(context, *run);
  return run;
}

// Cancels what was to start after the success of `ended`, then what was to start after those, and
// so on; one after the other, as the chain may be long.
absl::Status CancelHopeless(WriteContext& context, v1::Run ended) {
  std::deque<v1::Run> causes;
  causes.push_back(std::move(ended));
  for (; !causes.empty(); causes.pop_front()) {
    const absl::StatusOr<std::vector<std::string>> hopeless =
        ReadHopeless(context.database, causes.front());
    if (!hopeless.ok()) return hopeless.status();
    for (const std::string& id : *hopeless) {
      absl::StatusOr<v1::Run> run = UpdateOne(context, id, [&](v1::Run& changed) {
        changed.set_state(v1::Run::STATE_CANCELLED);
        changed.clear_wait_reason();
        changed.set_end_reason(WhyHopeless(causes.front()));
        return absl::OkStatus();
      });
      if (!run.ok()) return run.status();
      causes.push_back(*std::move(run));
    }
  }
  return absl::OkStatus();
}

// A run that was just inserted, as ReadRun reads it: without a look at its settings, which are most
// of the work.
absl::StatusOr<v1::Run> AsStored(Database& database, const v1::Run& given) {
  v1::Run run;
  run.set_id(given.id());
  run.set_display_name(given.display_name());
  run.set_experiment(given.experiment());
  run.set_user(given.user());
  *run.mutable_spec() = given.spec();
  *run.mutable_effective_spec() = given.effective_spec();
  run.set_device(given.device());
  run.set_state(given.state());
  run.set_wait_reason(given.wait_reason());
  *run.mutable_create_time() = given.create_time();
  run.mutable_progress()->set_steps(given.effective_spec().steps());
  run.set_colour(given.colour());
  run.set_priority(
      std::string(domain::PriorityName(domain::PriorityNumber(given.priority()).value_or(0))));
  run.set_held(given.held());
  *run.mutable_resources() = given.resources();
  v1::Summary& summary = *run.mutable_summary();
  const v1::Summary& known = given.summary();
  if (known.has_parameter_count()) summary.set_parameter_count(known.parameter_count());
  if (known.has_flops_per_step()) summary.set_flops_per_step(known.flops_per_step());
  if (known.has_memory_bytes()) summary.set_memory_bytes(known.memory_bytes());
  if (given.after().empty()) return run;
  if (auto status = AddDependencies(database, run); !status.ok()) return status;
  return run;
}

template <typename T>
std::optional<T> If(bool present, T value) {
  return present ? std::optional<T>(value) : std::nullopt;
}

}  // namespace

absl::Status InsertRun(WriteContext& context, v1::Run run, v1::Run* stored_run) {
  const absl::StatusOr<std::string> spec = SpecToJson(run.spec());
  const absl::StatusOr<std::string> effective = SpecToJson(run.effective_spec());
  if (!spec.ok()) return spec.status();
  if (!effective.ok()) return effective.status();
  *run.mutable_create_time() = Time(context.wall_micros);
  {
    Statement insert = context.database.Prepared(
        "INSERT INTO runs (id, display_name, experiment, user_name, device, state, wait_reason, "
        "create_time, steps, changed_sequence, colour, parameter_count, flops_per_step, "
        "memory_bytes, priority, held, gpus, gpu_memory_bytes, exclusive, gpu_need_bytes) VALUES "
        "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, "
        "?20)");
    insert.Bind(1, run.id());
    insert.Bind(2, run.display_name());
    insert.Bind(3, run.experiment().empty() ? std::nullopt
                                            : std::optional<std::string_view>(run.experiment()));
    insert.Bind(4, run.user());
    insert.Bind(5, run.device());
    insert.Bind(6, int64_t{run.state()});
    insert.Bind(7, run.wait_reason());
    insert.Bind(8, context.wall_micros);
    insert.Bind(9, run.effective_spec().steps());
    insert.Bind(10, static_cast<int64_t>(context.sequence));
    insert.Bind(11, run.colour());
    const v1::Summary& known = run.summary();
    insert.Bind(12, If<int64_t>(known.has_parameter_count(), known.parameter_count()));
    insert.Bind(13, If(known.has_flops_per_step(), known.flops_per_step()));
    insert.Bind(14, If(known.has_memory_bytes(), known.memory_bytes()));
    insert.Bind(15, int64_t{domain::PriorityNumber(run.priority()).value_or(0)});
    insert.Bind(16, int64_t{run.held()});
    insert.Bind(17, int64_t{run.resources().gpus()});
    insert.Bind(18, run.resources().gpu_memory_bytes());
    insert.Bind(19, int64_t{run.resources().exclusive()});
    const bool resolved = run.effective_spec().has_layers();
    insert.Bind(20, resolved ? domain::GpuMemoryBytes(run.effective_spec()) : int64_t{0});
    if (absl::Status status = insert.Run(); !status.ok()) return status;
  }
  {
    Statement insert = context.database.Prepared(
        "INSERT INTO run_specs (run, spec, effective_spec) VALUES (?1, ?2, ?3)");
    insert.Bind(1, run.id());
    insert.Bind(2, *spec);
    insert.Bind(3, *effective);
    if (absl::Status status = insert.Run(); !status.ok()) return status;
  }
  if (absl::Status status = WriteDependencies(context.database, run.id(), run.after());
      !status.ok()) {
    return status;
  }
  if (absl::Status status = InsertRunSettings(context.database, run.id(), run.effective_spec());
      !status.ok()) {
    return status;
  }
  absl::StatusOr<v1::Run> stored = AsStored(context.database, run);
  if (!stored.ok()) return stored.status();
  PublishSnapshot(context, *stored);
  if (stored_run != nullptr) *stored_run = *std::move(stored);
  return absl::OkStatus();
}

absl::Status UpdateRun(WriteContext& context, const std::string& id,
                       const std::function<absl::Status(v1::Run&)>& change) {
  absl::StatusOr<v1::Run> run = UpdateOne(context, id, change);
  if (!run.ok()) return run.status();
  if (!domain::IsTerminal(run->state())) return absl::OkStatus();
  return CancelHopeless(context, *std::move(run));
}

absl::StatusOr<v1::Run> ReadRun(Database& database, std::string_view id) {
  absl::StatusOr<v1::Run> run = absl::NotFoundError(StrCat("there is no run ", id));
  {
    Statement select =
        database.Prepared("SELECT " NORMLAB_RUN_COLUMNS " FROM " NORMLAB_RUNS " WHERE id = ?1");
    select.Bind(1, id);
    if (select.Step()) run = RunOf(select);
    if (!select.status().ok()) return select.status();
  }
  if (!run.ok()) return run;
  if (absl::Status status = AddRest(database, *run); !status.ok()) return status;
  return run;
}

absl::StatusOr<std::string> ResolveRun(Database& database, const std::string& text) {
  constexpr size_t kShown = 5;
  constexpr const char* kWays[] = {
      "SELECT id FROM runs WHERE id = upper(?1) LIMIT 6",
      "SELECT id FROM runs WHERE display_name = ?1 ORDER BY id DESC LIMIT 6",
      // '~' is behind everything that an id has.
      "SELECT id FROM runs WHERE id >= upper(?1) AND id < upper(?1) || '~' LIMIT 6"};
  for (const char* way : kWays) {
    if (text.empty()) break;  // the beginning of every id
    Statement select = database.Prepared(way);
    select.Bind(1, text);
    std::vector<std::string> ids;
    while (select.Step()) ids.push_back(select.Text(0));
    if (!select.status().ok()) return select.status();
    if (ids.size() == 1) return ids.front();
    if (ids.empty()) continue;
    std::string message = StrCat("\"", text, "\" is more than one run: ", ids.front());
    for (size_t i = 1; i < ids.size() && i < kShown; ++i) StrAppend(&message, ", ", ids[i]);
    if (ids.size() > kShown) message += ", and more";
    return absl::FailedPreconditionError(message);
  }
  return absl::NotFoundError(StrCat("there is no run \"", text, "\""));
}

absl::StatusOr<std::vector<v1::Run>> ReadRuns(Database& database, const RunQuery& query) {
  uint64_t mask = 0;
  for (const v1::Run::State state : query.states) mask |= uint64_t{1} << state;
  std::vector<v1::Run> runs;
  {
    Statement select = database.Prepared(
        query.oldest_first
            ? "SELECT " NORMLAB_RUN_COLUMNS " FROM " NORMLAB_RUNS
              " WHERE (?1 = '' OR experiment = ?1) AND (?2 = 0 OR ?2 & (1 << state)) "
              "AND id > ?3 ORDER BY id LIMIT ?4"
            : "SELECT " NORMLAB_RUN_COLUMNS " FROM " NORMLAB_RUNS
              " WHERE (?1 = '' OR experiment = ?1) AND (?2 = 0 OR ?2 & (1 << state)) "
              "AND (?3 = '' OR id < ?3) ORDER BY id DESC LIMIT ?4");
    select.Bind(1, query.experiment);
    select.Bind(2, static_cast<int64_t>(mask));
    select.Bind(3, query.oldest_first ? query.after : query.before);
    select.Bind(4, int64_t{query.limit});
    while (select.Step()) {
      absl::StatusOr<v1::Run> run = RunOf(select);
      if (!run.ok()) return run.status();
      runs.push_back(*std::move(run));
    }
    if (!select.status().ok()) return select.status();
  }
  for (v1::Run& run : runs) {
    if (absl::Status status = AddRest(database, run); !status.ok()) return status;
  }
  return runs;
}

absl::StatusOr<std::vector<ChangedRun>> RunsChangedSince(Database& database,
                                                         const ChangedRun& place, int limit) {
  Statement select = database.Prepared(
      "SELECT id, changed_sequence FROM runs WHERE changed_sequence >= ?1 "
      "AND (changed_sequence > ?1 OR (?2 <> '' AND id > ?2)) "
      "ORDER BY changed_sequence, id LIMIT ?3");
  select.Bind(1, static_cast<int64_t>(place.sequence));
  select.Bind(2, place.id);
  select.Bind(3, int64_t{limit});
  std::vector<ChangedRun> changed;
  while (select.Step()) {
    changed.push_back({select.Text(0), static_cast<uint64_t>(select.Integer(1))});
  }
  if (!select.status().ok()) return select.status();
  return changed;
}

absl::StatusOr<std::string> ReadLatestId(Database& database) {
  Statement select = database.Prepared(
      "SELECT max(coalesce((SELECT max(id) FROM runs), ''), "
      "coalesce((SELECT max(id) FROM experiments), ''))");
  if (!select.Step()) return select.status();
  return select.Text(0);
}

absl::StatusOr<uint64_t> ReadSequence(Database& database) {
  Statement select = database.Prepared("SELECT value FROM meta WHERE name = 'sequence'");
  if (!select.Step()) {
    return select.status().ok() ? absl::DataLossError("the store has no sequence")
                                : select.status();
  }
  return static_cast<uint64_t>(select.Integer(0));
}

}  // namespace normlab::storage
