// The part of the api that reads points, stored ones and those to come.
#include <algorithm>
#include <set>
#include <utility>

#include "server/app/run_watch.h"
#include "server/app/server_api.h"
#include "server/base/strings.h"
#include "server/domain/downsample.h"
#include "server/storage/curves.h"
#include "server/storage/experiments.h"
#include "server/storage/run_deletion.h"

namespace normlab::app {
namespace {

using domain::FieldViolation;

constexpr int kLargestWatch = 1000;

v1::SeriesColumn ColumnOf(const storage::NamedCurve& named, int32_t max_points) {
  v1::SeriesColumn column;
  const domain::CurveFacts facts = domain::FactsOf(named.curve);
  const domain::Curve drawn =
      domain::Downsample(named.curve, static_cast<size_t>(std::max(0, max_points)));
  column.mutable_column()->set_name(named.name);
  column.mutable_column()->mutable_steps()->Add(drawn.steps.begin(), drawn.steps.end());
  column.mutable_column()->mutable_values()->Add(drawn.values.begin(), drawn.values.end());
  column.set_total_points(facts.total_points);
  column.set_non_finite_points(facts.non_finite_points);
  if (facts.first_non_finite_step) column.set_first_non_finite_step(*facts.first_non_finite_step);
  return column;
}

}  // namespace

absl::StatusOr<v1::ReadSeriesResponse> ServerApi::ReadSeries(
    const Principal&, const v1::ReadSeriesRequest& request) {
  if (absl::Status status = CheckId("run", request.run()); !status.ok()) return status;
  std::vector<FieldViolation> wrong;
  if (request.max_points() < 0) wrong.push_back({"max_points", "is negative; use 0 for all"});
  if (request.from_step() < 0) wrong.push_back({"from_step", "is negative"});
  if (request.to_step() < 0) wrong.push_back({"to_step", "is negative; use 0 for the last"});
  if (!wrong.empty()) return domain::InvalidFields(wrong);
  storage::StepRange range;
  range.first = request.from_step();
  if (request.to_step() > 0) range.last = request.to_step();
  std::vector<std::string> names(request.names().begin(), request.names().end());
  v1::ReadSeriesResponse response;
  response.set_run(request.run());
  absl::Status status = parts_.store.Read([&](storage::Database& database) {
    if (auto found = storage::ReadRun(database, request.run()).status(); !found.ok()) return found;
    if (names.empty()) {
      absl::StatusOr<std::vector<std::string>> all =
          storage::ReadSeriesNames(database, request.run());
      if (!all.ok()) return all.status();
      names = *std::move(all);
    }
    // One at a time: of a long curve only what is drawn stays in memory.
    std::set<std::string> done;
    for (const std::string& name : names) {
      if (!done.insert(name).second) continue;
      const auto curves = storage::ReadDefaultCurves(database, request.run(), {name}, range);
      if (!curves.ok()) return curves.status();
      *response.add_columns() = ColumnOf(curves->front(), request.max_points());
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<std::unique_ptr<Watch>> ServerApi::WatchRuns(const Principal&,
                                                            const v1::WatchRunsRequest& request) {
  RunWatch::Options options;
  options.from_step = request.from_step();
  options.tail = request.tail();
  std::set<std::string> known;
  absl::Status status = parts_.store.Read([&](storage::Database& database) -> absl::Status {
    for (const std::string& id : request.runs()) {
      if (auto checked = CheckId("runs", id); !checked.ok()) return checked;
      if (auto found = storage::ReadRun(database, id).status(); !found.ok()) {
        // One who comes back is told on the stream that it was deleted meanwhile.
        const absl::StatusOr<bool> deleted = storage::WasDeleted(database, id);
        if (!deleted.ok()) return deleted.status();
        if (!*deleted || request.resume_token().empty()) return found;
      }
      if (known.insert(id).second) options.runs.push_back(id);
    }
    if (!request.experiment().empty()) {
      const auto experiment = storage::ReadExperiment(database, request.experiment());
      if (!experiment.ok()) return experiment.status();
      for (const v1::Run& run : experiment->runs()) {
        if (known.insert(run.id()).second) options.runs.push_back(run.id());
      }
    }
    if (request.resume_token().empty()) return absl::OkStatus();
    const absl::StatusOr<uint64_t> latest = storage::ReadSequence(database);
    if (!latest.ok()) return latest.status();
    const absl::StatusOr<uint64_t> after =
        ReadResumeToken(request.resume_token(), parts_.store.store_id(), *latest);
    if (!after.ok()) return after.status();
    options.after = *after;
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (options.runs.size() > kLargestWatch) {
    return domain::InvalidFields(
        {{"runs", StrCat(options.runs.size(), " runs are too many for one stream; watch at most ",
                         kLargestWatch)}});
  }
  options.lobby = request.all() || options.runs.empty();
  return std::make_unique<RunWatch>(parts_.store, parts_.hub, std::move(options));
}

}  // namespace normlab::app
