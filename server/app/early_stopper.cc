#include "server/app/early_stopper.h"

#include <algorithm>
#include <utility>

#include "server/base/log.h"
#include "server/domain/early_stop.h"
#include "server/domain/run_state.h"
#include "server/storage/experiments.h"
#include "server/storage/runs.h"

namespace normlab::app {
namespace {

using storage::Database;
using storage::EarlyStopRow;
using storage::WriteContext;

constexpr std::chrono::seconds kTryAgain(1);  // what the disk was too full for

// Ids of experiments with a rule that have runs which have not ended.
absl::StatusOr<std::vector<std::string>> UnfinishedSweeps(Database& database) {
  storage::Statement select = database.Prepared(
      "SELECT DISTINCT experiments.id FROM runs JOIN experiments ON experiments.id = "
      "runs.experiment WHERE runs.state < ?1 AND experiments.sweep LIKE '%\"earlyStop\"%'");
  select.Bind(1, int64_t{v1::Run::STATE_SUCCEEDED});  // the first of the terminal states
  std::vector<std::string> ids;
  while (select.Step()) ids.push_back(select.Text(0));
  if (!select.status().ok()) return select.status();
  return ids;
}

}  // namespace

EarlyStopper::EarlyStopper(storage::Store& store, StopRun stop_run)
    : store_(store), stop_run_(std::move(stop_run)) {}

EarlyStopper::~EarlyStopper() { Stop(); }

absl::Status EarlyStopper::Start() {
  std::vector<v1::Experiment> experiments;
  absl::Status status = store_.Read([&](Database& database) {
    const absl::StatusOr<std::vector<std::string>> ids = UnfinishedSweeps(database);
    if (!ids.ok()) return ids.status();
    for (const std::string& id : *ids) {
      absl::StatusOr<v1::Experiment> experiment = storage::ReadExperiment(database, id);
      if (!experiment.ok()) return experiment.status();
      experiments.push_back(*std::move(experiment));
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  for (const v1::Experiment& experiment : experiments) Watch(experiment);
  thread_ = std::thread([this] { Loop(); });
  return absl::OkStatus();
}

void EarlyStopper::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    ready_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void EarlyStopper::Watch(const v1::Experiment& experiment) {
  if (!experiment.sweep().has_early_stop()) return;
  MutexLock lock(mutex_);
  rules_[experiment.id()] = experiment.sweep().early_stop();
  for (const v1::Run& run : experiment.runs()) NoteSnapshot(run);
}

void EarlyStopper::Note(const std::vector<domain::EventPtr>& events) {
  MutexLock lock(mutex_);
  if (rules_.empty()) return;
  for (const domain::EventPtr& event : events) {
    const v1::WatchRunsResponse& message = event->message();
    if (message.has_run()) NoteSnapshot(message.run());
    if (message.has_points()) NotePoints(message.points());
    if (message.has_end() || message.has_deleted()) runs_.erase(event->run());
  }
}

// A run that is new here may have points already.
void EarlyStopper::NoteSnapshot(const v1::Run& run) {
  if (domain::IsTerminal(run.state()) || !rules_.contains(run.experiment())) return;
  if (!runs_.emplace(run.id(), WatchedRun{run.experiment(), 0}).second) return;
  waiting_.insert(run.id());
  ready_.NotifyAll();
}

void EarlyStopper::NotePoints(const v1::Points& points) {
  const auto found = runs_.find(points.run());
  if (found == runs_.end()) return;
  for (const v1::Column& column : points.columns()) {
    if (column.name() != "loss" || column.steps().empty()) continue;
    if (*column.steps().rbegin() < found->second.next_step) continue;
    waiting_.insert(points.run());
    ready_.NotifyAll();
  }
}

void EarlyStopper::Loop() {
  std::set<std::string> again;
  while (true) {
    std::set<std::string> runs;
    {
      MutexLock lock(mutex_);
      while (waiting_.empty() && !stopping_) {
        if (again.empty()) {
          ready_.Wait(mutex_);
        } else if (!ready_.WaitFor(mutex_, kTryAgain)) {
          waiting_.swap(again);
        }
      }
      if (stopping_) return;
      runs.swap(waiting_);
    }
    for (const std::string& run : runs) {
      if (!LookAt(run)) again.insert(run);
    }
  }
}

bool EarlyStopper::LookAt(const std::string& run) {
  v1::EarlyStop rule;
  {
    MutexLock lock(mutex_);
    const auto found = runs_.find(run);
    if (found == runs_.end()) return true;  // it has ended
    rule = rules_[found->second.experiment];
  }
  Comparison comparison;
  absl::Status status = store_.writer().Write([&](WriteContext& context) {
    absl::StatusOr<Comparison> made = Compare(context, run, rule);
    if (made.ok()) comparison = *std::move(made);
    return made.status();
  });
  if (status.ok() && !comparison.reason.empty()) {
    status = stop_run_(run, comparison.reason);
    if (absl::IsFailedPrecondition(status)) status = absl::OkStatus();  // it was quicker
    if (status.ok()) {
      status = store_.writer().Write(
          [&](WriteContext& context) { return storage::SetEarlyStopDone(context, run); });
    }
  }
  if (absl::IsNotFound(status)) return true;  // deleted
  if (!status.ok()) {
    LogWarning("run not compared with its peers for now",
               {{"run", run}, {"error", std::string(status.message())}});
    return false;
  }
  MutexLock lock(mutex_);
  const auto found = runs_.find(run);
  if (found == runs_.end()) return true;
  if (comparison.next_step) {
    found->second.next_step = *comparison.next_step;
  } else {
    runs_.erase(found);
  }
  return true;
}

absl::StatusOr<EarlyStopper::Comparison> EarlyStopper::Compare(WriteContext& context,
                                                               const std::string& id,
                                                               const v1::EarlyStop& rule) {
  const absl::StatusOr<v1::Run> run = storage::ReadRun(context.database, id);
  if (!run.ok()) return run.status();
  const absl::StatusOr<std::vector<EarlyStopRow>> earlier =
      storage::ReadEarlyStops(context.database, id);
  if (!earlier.ok()) return earlier.status();
  for (const EarlyStopRow& row : *earlier) {
    if (row.pending) return Comparison{row.reason, std::nullopt};
  }
  if (domain::IsTerminal(run->state())) return Comparison{};
  for (const int64_t step : rule.steps()) {
    if (!earlier->empty() && step <= earlier->back().step) continue;
    absl::StatusOr<std::map<std::string, double>> losses =
        storage::ReadLossesAt(context.database, run->experiment(), step);
    if (!losses.ok()) return losses.status();
    const auto own = losses->extract(id);
    if (own.empty()) return Comparison{"", step};
    std::vector<double> peers;
    for (const auto& [peer, loss] : *losses) peers.push_back(loss);
    EarlyStopRow row;
    row.run = id;
    row.step = step;
    row.peers = std::ssize(peers);
    row.reason = domain::WhyStopEarly(rule, step, own.mapped(), std::move(peers));
    row.pending = !row.reason.empty();
    if (absl::Status status = storage::InsertEarlyStop(context, row); !status.ok()) return status;
    if (row.pending) return Comparison{row.reason, std::nullopt};
  }
  return Comparison{};
}

}  // namespace normlab::app
