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
  absl::StatusOr<std::vector<std::string>> ids;
  absl::Status status = store_.Read([&](Database& database) {
    ids = UnfinishedSweeps(database);
    return ids.status();
  });
  if (!status.ok()) return status;
  for (const std::string& id : *ids) {
    const absl::StatusOr<v1::Experiment> experiment = storage::ReadWholeExperiment(store_, id);
    if (!experiment.ok()) return experiment.status();
    Watch(*experiment);
  }
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
  Standing standing;
  const auto take = [&standing](absl::StatusOr<Standing> found) {
    if (found.ok()) standing = *std::move(found);
    return found.status();
  };
  // Most have nothing to write: a thousand new runs would be a thousand commits.
  absl::Status status =
      store_.Read([&](Database& database) { return take(Find(database, run, rule)); });
  if (status.ok() && standing.is_due) {
    status = store_.writer().Write(
        [&](WriteContext& context) { return take(Compare(context, run, rule)); });
  }
  if (status.ok() && !standing.reason.empty()) status = TellToStop(run, standing.reason);
  if (absl::IsNotFound(status)) return true;  // deleted
  if (!status.ok()) {
    LogWarning("run not compared with its peers for now",
               {{"run", run}, {"error", std::string(status.message())}});
    return false;
  }
  MutexLock lock(mutex_);
  const auto found = runs_.find(run);
  if (found == runs_.end()) return true;
  if (standing.next_step) {
    found->second.next_step = *standing.next_step;
  } else {
    runs_.erase(found);
  }
  return true;
}

absl::Status EarlyStopper::TellToStop(const std::string& run, const std::string& reason) {
  const absl::Status told = stop_run_(run, reason);
  if (!told.ok() && !absl::IsFailedPrecondition(told)) return told;  // else it was quicker
  return store_.writer().Write(
      [&](WriteContext& context) { return storage::SetEarlyStopDone(context, run); });
}

absl::StatusOr<EarlyStopper::Standing> EarlyStopper::Find(Database& database,
                                                          const std::string& run,
                                                          const v1::EarlyStop& rule) {
  const absl::StatusOr<v1::Run> read = storage::ReadRun(database, run);
  if (!read.ok()) return read.status();
  const absl::StatusOr<std::vector<EarlyStopRow>> rows = storage::ReadEarlyStops(database, run);
  if (!rows.ok()) return rows.status();
  Standing standing;
  for (const EarlyStopRow& row : *rows) {
    if (row.pending) standing.reason = row.reason;
  }
  const bool is_ending =
      domain::IsTerminal(read->state()) || read->state() == v1::Run::STATE_CANCELLING;
  if (!standing.reason.empty() || is_ending) return standing;
  for (const int64_t step : rule.steps()) {
    if (!rows->empty() && step <= rows->back().step) continue;
    standing.next_step = step;
    const absl::StatusOr<bool> has_come = storage::HasLossAt(database, run, step);
    if (!has_come.ok()) return has_come.status();
    standing.is_due = *has_come;
    break;
  }
  return standing;
}

absl::StatusOr<EarlyStopper::Standing> EarlyStopper::Compare(WriteContext& context,
                                                             const std::string& run,
                                                             const v1::EarlyStop& rule) {
  const absl::StatusOr<v1::Run> read = storage::ReadRun(context.database, run);
  if (!read.ok()) return read.status();
  absl::StatusOr<Standing> standing = Find(context.database, run, rule);
  while (standing.ok() && standing->is_due) {
    EarlyStopRow row;
    row.run = run;
    row.step = *standing->next_step;
    absl::StatusOr<std::map<std::string, double>> losses =
        storage::ReadLossesAt(context.database, read->experiment(), row.step);
    if (!losses.ok()) return losses.status();
    const double own = losses->extract(run).mapped();
    std::vector<double> peers;
    for (const auto& [peer, loss] : *losses) peers.push_back(loss);
    row.peers = std::ssize(peers);
    row.reason = domain::WhyStopEarly(rule, row.step, own, std::move(peers));
    row.pending = !row.reason.empty();
    if (absl::Status status = storage::InsertEarlyStop(context, row); !status.ok()) return status;
    standing = Find(context.database, run, rule);
  }
  return standing;
}

}  // namespace normlab::app
