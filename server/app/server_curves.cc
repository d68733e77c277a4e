// The part of the api that reads points, stored ones and those to come.
#include <set>
#include <utility>

#include "server/app/guarded_watch.h"
#include "server/app/run_watch.h"
#include "server/app/server_api.h"
#include "server/base/strings.h"
#include "server/storage/curves.h"
#include "server/storage/experiments.h"
#include "server/storage/run_deletion.h"

namespace normlab::app {
namespace {

using domain::FieldViolation;

constexpr int kLargestWatch = 1000;
constexpr int kMostNames = 10'000;  // of series in one answer

// Points of an answer: what one message, and whoever reads it, can bear.
constexpr int64_t kMostPoints = 2'000'000;
// Rows that one read transaction reads; a million take about a second.
constexpr int64_t kRowsOfRead = 50'000;

v1::SeriesColumn ColumnOf(const storage::CurveReader& curve) {
  v1::SeriesColumn column;
  column.mutable_column()->set_name(curve.name());
  const domain::Curve& drawn = curve.drawn();
  column.mutable_column()->mutable_steps()->Add(drawn.steps.begin(), drawn.steps.end());
  column.mutable_column()->mutable_values()->Add(drawn.values.begin(), drawn.values.end());
  column.set_total_points(curve.points());
  column.set_non_finite_points(curve.whole().non_finite);
  if (curve.whole().first_bad) column.set_first_non_finite_step(curve.whole().first_bad->step);
  return column;
}

absl::Status CheckRequest(const v1::ReadSeriesRequest& request) {
  std::vector<FieldViolation> wrong;
  if (request.max_points() < 0) wrong.push_back({"max_points", "is negative; use 0 for all"});
  if (request.max_points() > 0 && request.max_points() < domain::kKeptOfBlock) {
    wrong.push_back({"max_points", StrCat("is ", request.max_points(), "; use at least ",
                                          domain::kKeptOfBlock, ", or 0 for all")});
  }
  if (request.from_step() < 0) wrong.push_back({"from_step", "is negative"});
  if (request.to_step() < 0) wrong.push_back({"to_step", "is negative; use 0 for the last"});
  if (request.names_size() > kMostNames) {
    wrong.push_back({"names", StrCat(request.names_size(), " names are too many; ask for at most ",
                                     kMostNames, ", or for all by naming none")});
  }
  if (request.attempt() < 0) {
    wrong.push_back({"attempt", "is negative; use 0 for the default curve"});
  }
  return wrong.empty() ? absl::OkStatus() : domain::InvalidFields(wrong);
}

// The series asked for, found and counted, nothing of them read.
absl::StatusOr<std::vector<storage::CurveReader>> PlanSeries(storage::Database& database,
                                                             const v1::ReadSeriesRequest& request) {
  storage::CurveQuery query;
  query.range.first = request.from_step();
  if (request.to_step() > 0) query.range.last = request.to_step();
  query.attempt = request.attempt();
  query.max_points = request.max_points();
  const auto segments = storage::SegmentsOf(database, request.run(), query);
  if (!segments.ok()) return segments.status();
  std::vector<std::string> names(request.names().begin(), request.names().end());
  if (names.empty()) {
    auto all = storage::ReadSeriesNames(database, *segments);
    if (!all.ok()) return all.status();
    names = *std::move(all);
  }
  std::vector<storage::CurveReader> curves;
  std::set<std::string> done;
  for (std::string& name : names) {
    if (!done.insert(name).second) continue;
    auto curve = storage::CurveReader::Plan(database, *segments, std::move(name), query.max_points);
    if (!curve.ok()) return curve.status();
    curves.push_back(*std::move(curve));
  }
  return curves;
}

absl::Status CheckSize(const std::vector<storage::CurveReader>& curves) {
  int64_t points = 0;
  for (const storage::CurveReader& curve : curves) points += curve.most_drawn();
  if (points <= kMostPoints) return absl::OkStatus();
  return domain::InvalidFields(
      {{"max_points", StrCat(points, " points are too many for one answer (", kMostPoints,
                             "); ask for fewer, or read all by ReadPoints")}});
}

absl::Status TooManyRuns(size_t count) {
  return domain::InvalidFields(
      {{"runs",
        StrCat(count, " runs are too many for one stream; watch at most ", kLargestWatch)}});
}

}  // namespace

absl::StatusOr<v1::ReadSeriesResponse> ServerApi::ReadSeries(const Principal&,
                                                             const v1::ReadSeriesRequest& request) {
  if (absl::Status status = CheckId("run", request.run()); !status.ok()) return status;
  if (absl::Status status = CheckRequest(request); !status.ok()) return status;
  std::vector<storage::CurveReader> curves;
  absl::Status status = parts_.store.Read([&](storage::Database& database) {
    auto planned = PlanSeries(database, request);
    if (planned.ok()) curves = *std::move(planned);
    return planned.status();
  });
  if (!status.ok()) return status;
  if (status = CheckSize(curves); !status.ok()) return status;
  v1::ReadSeriesResponse response;
  response.set_run(request.run());
  for (size_t next = 0; next < curves.size();) {
    status = parts_.store.Read([&](storage::Database& database) -> absl::Status {
      // Between two reads it may have been deleted.
      if (auto found = storage::CheckRunExists(database, request.run()); !found.ok()) return found;
      for (int64_t rows = kRowsOfRead; next < curves.size() && rows > 0;) {
        const absl::StatusOr<bool> complete = curves[next].Read(database, rows);
        if (!complete.ok()) return complete.status();
        if (!*complete) break;
        *response.add_columns() = ColumnOf(curves[next]);
        curves[next++] = {};  // its points are in the answer
      }
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
  }
  return response;
}

absl::StatusOr<std::unique_ptr<Watch>> ServerApi::WatchRuns(const Principal& principal,
                                                            const v1::WatchRunsRequest& request) {
  // Before any of them is looked for.
  if (request.runs_size() > kLargestWatch) return TooManyRuns(request.runs_size());
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
      const auto ids = storage::ReadRunIds(database, request.experiment(), kLargestWatch + 1);
      if (!ids.ok()) return ids.status();
      for (const std::string& id : *ids) {
        if (known.insert(id).second) options.runs.push_back(id);
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
  if (options.runs.size() > kLargestWatch) return TooManyRuns(options.runs.size());
  options.lobby = request.all() || options.runs.empty();
  std::unique_ptr<Watch> watch = parts_.problems.Tell(
      std::make_unique<RunWatch>(parts_.store, parts_.hub, std::move(options)));
  if (principal.revocation) {
    watch = std::make_unique<GuardedWatch>(std::move(watch), principal.revocation);
  }
  return watch;
}

}  // namespace normlab::app
