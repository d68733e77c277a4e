// What the server stops by itself: the part of the dispatcher that looks after time limits, takes
// devices from preemptible runs, and gives trainers a time to write their checkpoints. Each change
// of state is in the database first, and only then something is said to a trainer.
#include "server/app/run_stops.h"

#include <utility>

#include "server/app/dispatcher.h"
#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/domain/run_state.h"
#include "server/storage/runs.h"

namespace normlab::app {
namespace {

using storage::AttemptRow;
using storage::RunControl;
using storage::StopCause;
using v1::Run;

constexpr std::chrono::milliseconds kTryAgain(500);  // to store that a run's time is over

absl::Status CannotStop(const Run& run) {
  return absl::FailedPreconditionError(
      StrCat("run ", run.id(), " is ", domain::StateWord(run.state())));
}

}  // namespace

std::string MakesRoomFor(storage::Database& database, const RunControl& control) {
  if (control.stop_cause != StopCause::kPreempted) return "";
  storage::Statement select = database.Prepared("SELECT display_name FROM runs WHERE id = ?1");
  select.Bind(1, control.stop_detail);
  return select.Step() ? select.Text(0) : control.stop_detail;
}

std::string WhyItWasStopped(StopCause cause, const std::string& makes_room_for) {
  if (cause == StopCause::kServer) return "the server was stopped; ";
  return cause == StopCause::kPreempted ? StrCat("paused for ", makes_room_for, "; ") : "";
}

std::string WhyItWasStopped(storage::Database& database, const std::string& run) {
  const absl::StatusOr<RunControl> control = storage::ReadRunControl(database, run);
  if (!control.ok()) return "";  // the run itself cannot be read then, which its reader says
  return WhyItWasStopped(control->stop_cause, MakesRoomFor(database, *control));
}

absl::Status Dispatcher::StopWithCheckpoint(const std::string& run_id, StopCause cause,
                                            const std::string& detail) {
  AttemptRow attempt;
  const absl::Status status = Change(
      run_id, domain::Actor(), "",
      [&](Run& run, RunControl& control) {
        const bool pausing = run.state() == Run::STATE_PAUSING;
        if (cause == StopCause::kPreempted && !run.effective_spec().preemptible()) {
          return absl::FailedPreconditionError(StrCat("run ", run_id, " is not preemptible"));
        }
        // A run that is on its way out gives its devices back anyway; only that its time is over
        // makes something else of it.
        if (!domain::IsActive(run.state()) || run.state() == Run::STATE_CANCELLING ||
            (pausing && cause != StopCause::kTime)) {
          return CannotStop(run);
        }
        control.stop_cause = cause;
        control.stop_detail = detail;
        run.set_state(Run::STATE_PAUSING);
        return absl::OkStatus();
      },
      attempt);
  if (!status.ok()) return status;
  GiveGrace(attempt);
  TrainerOf(attempt).pause();
  return absl::OkStatus();
}

absl::Status Dispatcher::Preempt(const std::string& run, const std::string& by) {
  const absl::Status status = StopWithCheckpoint(run, StopCause::kPreempted, by);
  if (status.ok()) LogInfo("run to make room", {{"run", run}, {"for", by}});
  return status;
}

absl::StatusOr<size_t> Dispatcher::StopRuns() {
  {
    MutexLock lock(mutex_);
    starts_nothing_ = true;
  }
  const absl::StatusOr<std::vector<Run>> active = ReadActive();
  if (!active.ok()) return active.status();
  for (const Run& run : *active) {
    if (run.state() == Run::STATE_PAUSING || run.state() == Run::STATE_CANCELLING) continue;
    const absl::Status status = StopWithCheckpoint(run.id(), StopCause::kServer, "");
    // It may have ended meanwhile; whatever else it is, the next call tries it again.
    if (WorthRetrying(status)) return status;
  }
  return active->size();
}

absl::Status Dispatcher::StopEarly(const std::string& run_id, const std::string& reason) {
  AttemptRow attempt;
  const absl::Status status = Change(
      run_id, domain::Actor(), "cancel",
      [&](Run& run, RunControl& control) {
        if (domain::IsTerminal(run.state())) return CannotStop(run);
        control.stop_cause = StopCause::kEarly;
        control.stop_detail = reason;
        const bool active = domain::IsActive(run.state());
        run.set_state(active ? Run::STATE_CANCELLING : Run::STATE_CANCELLED);
        run.clear_wait_reason();
        if (!active) run.set_end_reason(reason);
        return absl::OkStatus();
      },
      attempt);
  if (!status.ok()) return status;
  LogInfo("run stopped early", {{"run", run_id}, {"reason", reason}});
  EndProcesses(attempt);
  return absl::OkStatus();
}

void Dispatcher::EndForTrouble(scheduler::DeviceBoard::Trouble trouble) {
  MutexLock lock(mutex_);
  troubles_.push_back(std::move(trouble));
  ready_.NotifyAll();
}

// By the dispatcher's thread, which ends nothing before it knows all processes that are left.
void Dispatcher::EndTroubled() {
  std::vector<scheduler::DeviceBoard::Trouble> troubles;
  {
    MutexLock lock(mutex_);
    troubles.swap(troubles_);
  }
  for (const scheduler::DeviceBoard::Trouble& trouble : troubles) EndOne(trouble);
}

void Dispatcher::EndOne(const scheduler::DeviceBoard::Trouble& trouble) {
  const bool over_budget = trouble.kind == scheduler::DeviceBoard::Trouble::Kind::kOverBudget;
  AttemptRow attempt;
  absl::Status status = store_.Read([&](storage::Database& database) {
    absl::StatusOr<AttemptRow> latest = storage::ReadLatestAttempt(database, trouble.run);
    if (latest.ok()) attempt = *std::move(latest);
    return latest.status();
  });
  const executor::AttemptKey key = {attempt.run, attempt.number};
  if (!status.ok() || IsBeingEnded(key)) return;
  status = Change(
      trouble.run, domain::Actor(), "",
      [&](Run& run, RunControl& control) {
        // One that is on its way out gives its memory back anyway.
        const bool leaving =
            run.state() == Run::STATE_CANCELLING || run.state() == Run::STATE_PAUSING;
        if (!domain::IsActive(run.state()) || (over_budget && leaving)) return CannotStop(run);
        if (over_budget) {
          control.stop_cause = StopCause::kMemory;
          control.stop_detail = trouble.reason;
        }
        return absl::OkStatus();
      },
      attempt);
  // What could not be stored is tried at the next look; an attempt that came since is looked at
  // then.
  if (!status.ok() || attempt.number != key.attempt) return;
  {
    MutexLock lock(mutex_);
    timers_[key].being_ended = true;
  }
  LogWarning("a run is ended", {{"run", trouble.run}, {"why", trouble.reason}});
  executor_->Terminate(key, options_.cancel_grace);
}

bool Dispatcher::IsBeingEnded(const executor::AttemptKey& attempt) const {
  MutexLock lock(mutex_);
  const auto found = timers_.find(attempt);
  return found != timers_.end() && found->second.being_ended;
}

// --- time ---

void Dispatcher::WatchTime(const AttemptRow& attempt, double seconds_left) {
  const auto left = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds_left));
  MutexLock lock(mutex_);
  timers_[{attempt.run, attempt.number}].time_out = options_.clock->Now() + left;
}

void Dispatcher::GiveGrace(const AttemptRow& attempt) {
  MutexLock lock(mutex_);
  timers_[{attempt.run, attempt.number}].end = options_.clock->Now() + options_.checkpoint_grace;
  ready_.NotifyAll();  // it may be the next thing to do
}

void Dispatcher::TakeGraceBack(const AttemptRow& attempt) {
  MutexLock lock(mutex_);
  const auto found = timers_.find({attempt.run, attempt.number});
  if (found != timers_.end()) found->second.end.reset();
}

void Dispatcher::ForgetTimers(const executor::AttemptKey& attempt) {
  MutexLock lock(mutex_);
  timers_.erase(attempt);
}

void Dispatcher::EndOverdue() {
  const auto now = options_.clock->Now();
  std::vector<executor::AttemptKey> timed_out, too_slow;
  {
    MutexLock lock(mutex_);
    for (auto& [attempt, timers] : timers_) {
      const auto is_due = [now](auto& time) { return time && *time <= now; };
      if (is_due(timers.time_out)) timed_out.push_back(attempt);
      if (is_due(timers.end)) too_slow.push_back(attempt);
      if (is_due(timers.time_out)) timers.time_out.reset();
      if (is_due(timers.end)) timers.end.reset();
    }
  }
  for (const executor::AttemptKey& attempt : timed_out) {
    const absl::Status status = StopWithCheckpoint(attempt.run, StopCause::kTime, "");
    LogInfo("a run's time is over", {{"run", attempt.run}, {"status", status.ToString()}});
    if (!WorthRetrying(status)) continue;
    MutexLock lock(mutex_);
    timers_[attempt].time_out = now + kTryAgain;
  }
  for (const executor::AttemptKey& attempt : too_slow) {
    LogWarning("no checkpoint in time, the trainer is ended", {{"run", attempt.run}});
    executor_->Terminate(attempt, options_.cancel_grace);
  }
}

}  // namespace normlab::app
