#include "server/storage/experiments.h"

#include <google/protobuf/util/time_util.h>

#include <string>
#include <utility>

#include "server/base/strings.h"
#include "server/storage/runs.h"
#include "server/storage/spec_json.h"
#include "server/storage/store.h"

namespace normlab::storage {
namespace {

using google::protobuf::util::TimeUtil;

constexpr size_t kRunsOfPage = 500;

#define NORMLAB_EXPERIMENT_COLUMNS "id, display_name, preset, user_name, create_time, sweep"

absl::StatusOr<v1::Experiment> ExperimentOf(const Statement& row) {
  v1::Experiment experiment;
  experiment.set_id(row.Text(0));
  experiment.set_display_name(row.Text(1));
  experiment.set_preset(row.Text(2));
  experiment.set_user(row.Text(3));
  *experiment.mutable_create_time() = TimeUtil::MicrosecondsToTimestamp(row.Integer(4));
  if (const std::string sweep = row.Text(5); !sweep.empty()) {
    absl::Status status = SweepFromJson(sweep, *experiment.mutable_sweep());
    if (!status.ok()) return status;
  }
  return experiment;
}

}  // namespace

absl::Status InsertExperiment(WriteContext& context, const v1::Experiment& experiment) {
  std::string sweep;
  if (experiment.has_sweep()) {
    absl::StatusOr<std::string> json = SweepToJson(experiment.sweep());
    if (!json.ok()) return json.status();
    sweep = *std::move(json);
  }
  Statement insert =
      context.database.Prepared("INSERT INTO experiments (" NORMLAB_EXPERIMENT_COLUMNS
                                ") "
                                "VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
  insert.Bind(1, experiment.id());
  insert.Bind(2, experiment.display_name());
  insert.Bind(3, experiment.preset());
  insert.Bind(4, experiment.user());
  insert.Bind(5, context.wall_micros);
  insert.Bind(6, sweep);
  return insert.Run();
}

absl::StatusOr<std::string> ReadExperimentUser(Database& database, std::string_view id) {
  Statement select = database.Prepared("SELECT user_name FROM experiments WHERE id = ?1");
  select.Bind(1, id);
  if (select.Step()) return select.Text(0);
  if (!select.status().ok()) return select.status();
  return absl::NotFoundError(StrCat("there is no experiment ", id));
}

absl::StatusOr<v1::Experiment> ReadExperiment(Database& database, std::string_view id) {
  absl::StatusOr<v1::Experiment> experiment =
      absl::NotFoundError(StrCat("there is no experiment ", id));
  {
    Statement select =
        database.Prepared("SELECT " NORMLAB_EXPERIMENT_COLUMNS " FROM experiments WHERE id = ?1");
    select.Bind(1, id);
    if (select.Step()) experiment = ExperimentOf(select);
    if (!select.status().ok()) return select.status();
  }
  return experiment;
}

absl::StatusOr<v1::Experiment> ReadWholeExperiment(Store& store, std::string_view id) {
  absl::StatusOr<v1::Experiment> experiment;
  RunQuery query;
  query.experiment = std::string(id);
  query.limit = kRunsOfPage;
  query.oldest_first = true;
  for (size_t read = kRunsOfPage; read == kRunsOfPage;) {
    const absl::Status status = store.Read([&](Database& database) -> absl::Status {
      if (query.after.empty()) experiment = ReadExperiment(database, id);
      if (!experiment.ok()) return experiment.status();
      absl::StatusOr<std::vector<v1::Run>> runs = ReadRuns(database, query);
      if (!runs.ok()) return runs.status();
      read = runs->size();
      for (v1::Run& run : *runs) *experiment->add_runs() = std::move(run);
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
    if (read > 0) query.after = experiment->runs().rbegin()->id();
  }
  return experiment;
}

absl::StatusOr<std::vector<std::string>> ReadRunIds(Database& database, std::string_view experiment,
                                                    int limit) {
  Statement select =
      database.Prepared("SELECT id FROM runs WHERE experiment = ?1 ORDER BY id LIMIT ?2");
  select.Bind(1, experiment);
  select.Bind(2, int64_t{limit});
  std::vector<std::string> ids;
  while (select.Step()) ids.push_back(select.Text(0));
  if (!select.status().ok()) return select.status();
  return ids;
}

absl::StatusOr<std::vector<v1::Experiment>> ReadExperiments(Database& database,
                                                            std::string_view before, int limit) {
  Statement select = database.Prepared("SELECT " NORMLAB_EXPERIMENT_COLUMNS
                                       " FROM experiments "
                                       "WHERE ?1 = '' OR id < ?1 ORDER BY id DESC LIMIT ?2");
  select.Bind(1, before);
  select.Bind(2, int64_t{limit});
  std::vector<v1::Experiment> experiments;
  while (select.Step()) {
    absl::StatusOr<v1::Experiment> experiment = ExperimentOf(select);
    if (!experiment.ok()) return experiment.status();
    experiments.push_back(*std::move(experiment));
  }
  if (!select.status().ok()) return select.status();
  return experiments;
}

absl::StatusOr<std::vector<UnendedRun>> ReadUnendedRuns(Database& database,
                                                        std::string_view experiment) {
  Statement select = database.Prepared(
      "SELECT id, user_name, state FROM runs WHERE experiment = ?1 AND state < ?2 "
      "ORDER BY id DESC");
  select.Bind(1, experiment);
  select.Bind(2, int64_t{v1::Run::STATE_SUCCEEDED});  // and all behind it, which are ends
  std::vector<UnendedRun> runs;
  while (select.Step()) {
    runs.push_back(
        {select.Text(0), select.Text(1), static_cast<v1::Run::State>(select.Integer(2))});
  }
  if (!select.status().ok()) return select.status();
  return runs;
}

}  // namespace normlab::storage
