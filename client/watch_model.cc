#include "client/watch_model.h"

#include <algorithm>
#include <limits>

#include "server/export/palette.h"

namespace normlab::client {
namespace {

using normlab::v1::Attempt;
using normlab::v1::Run;
using normlab::v1::WatchRunsResponse;

void KeepUpTo(exporter::Series& series, int64_t step) {
  const auto end = std::upper_bound(series.steps.begin(), series.steps.end(), step);
  const auto count = static_cast<size_t>(end - series.steps.begin());
  series.steps.resize(count);
  series.values.resize(count);
}

const Attempt* FindAttempt(const Run& run, int32_t number) {
  for (const Attempt& attempt : run.attempts()) {
    if (attempt.number() == number) return &attempt;
  }
  return nullptr;
}

// What the curve keeps of the attempts up to one of them.
struct Kept {
  int32_t attempt;    // the latest of them that the latest attempt of all comes from; 0: none
  int64_t last_step;  // so far it was gone on from
};

Kept KeptOf(const Run& run, int32_t up_to) {
  Kept kept = {0, std::numeric_limits<int64_t>::max()};
  for (const Attempt& attempt : run.attempts()) {
    kept.attempt = std::max(kept.attempt, attempt.number());
  }
  while (kept.attempt > up_to) {
    const Attempt* attempt = FindAttempt(run, kept.attempt);
    kept.last_step =
        std::min(kept.last_step, attempt == nullptr ? 0 : attempt->resumed_from_step());
    const int32_t origin = attempt == nullptr ? 0 : attempt->resumed_from_attempt();
    kept.attempt = std::min(origin, kept.attempt - 1);
  }
  return kept;
}

void Remember(Run& run, const Attempt& attempt) {
  for (Attempt& known : *run.mutable_attempts()) {
    if (known.number() == attempt.number()) {
      known = attempt;
      return;
    }
  }
  *run.add_attempts() = attempt;
}

void Append(exporter::Series& series, const normlab::v1::Column& column, int64_t limit) {
  const int count = std::min(column.steps_size(), column.values_size());
  for (int i = 0; i < count; ++i) {
    if (column.steps(i) > limit) continue;  // of an attempt that was abandoned before
    if (!series.steps.empty() && column.steps(i) <= series.steps.back()) continue;  // seen before
    series.steps.push_back(column.steps(i));
    series.values.push_back(column.values(i));
  }
}

}  // namespace

int64_t WatchedRun::Step() const {
  const int64_t drawn = loss.steps.empty() ? 0 : loss.steps.back();
  return std::max(drawn, run.progress().step());
}

int64_t WatchedRun::Steps() const {
  return run.progress().steps() > 0 ? run.progress().steps() : run.effective_spec().steps();
}

WatchModel::WatchModel(const std::vector<Run>& runs) {
  for (size_t i = 0; i < runs.size(); ++i) {
    WatchedRun watched;
    watched.run = runs[i];
    watched.colour = exporter::CurveColour(runs[i].colour(), i);
    runs_.push_back(std::move(watched));
  }
}

bool WatchModel::AllEnded() const {
  return std::all_of(runs_.begin(), runs_.end(), [](const WatchedRun& run) { return run.ended; });
}

WatchedRun& WatchModel::Find(const std::string& id) {
  for (WatchedRun& watched : runs_) {
    if (watched.run.id() == id) return watched;
  }
  WatchedRun watched;
  watched.run.set_id(id);
  watched.colour = exporter::CurveColour("", runs_.size());
  runs_.push_back(std::move(watched));
  return runs_.back();
}

void WatchModel::StartAttempt(WatchedRun& run, int32_t attempt) {
  if (attempt <= run.attempt) return;
  const Kept kept = KeptOf(run.run, run.attempt);
  run.attempt = attempt;
  KeepUpTo(run.loss, kept.last_step);
  KeepUpTo(run.gradient_norm, kept.last_step);
}

void WatchModel::AddPoints(const normlab::v1::Points& points) {
  WatchedRun& watched = Find(points.run());
  StartAttempt(watched, points.attempt());
  const Kept kept = KeptOf(watched.run, points.attempt());
  // Of an attempt that was abandoned whole, unless nothing is known of it yet.
  if (kept.attempt < points.attempt() && FindAttempt(watched.run, points.attempt())) return;
  const int64_t limit = kept.last_step;
  for (const normlab::v1::Column& column : points.columns()) {
    if (column.name() == "loss") Append(watched.loss, column, limit);
    if (column.name() == "gradient_norm") Append(watched.gradient_norm, column, limit);
  }
}

void WatchModel::Apply(const WatchRunsResponse& event) {
  switch (event.event_case()) {
    case WatchRunsResponse::kRun:
      Find(event.run().id()).run = event.run();
      break;
    case WatchRunsResponse::kAttempt: {
      WatchedRun& watched = Find(event.attempt().run());
      Remember(watched.run, event.attempt().attempt());
      StartAttempt(watched, event.attempt().attempt().number());
      break;
    }
    case WatchRunsResponse::kPoints:
      AddPoints(event.points());
      break;
    case WatchRunsResponse::kProgress:
      *Find(event.progress().run()).run.mutable_progress() = event.progress().progress();
      break;
    case WatchRunsResponse::kEnd: {
      WatchedRun& watched = Find(event.end().run().id());
      watched.run = event.end().run();
      watched.ended = true;
      break;
    }
    case WatchRunsResponse::kDeleted:
      Find(event.deleted().run()).ended = true;  // as it was when last seen
      break;
    default:
      break;
  }
}

}  // namespace normlab::client
