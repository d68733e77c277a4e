// How attempts end, and what a restarted server makes of those it finds: the part of the dispatcher
// that deals with what is left in an attempt's folder.
#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "server/app/after_attempt.h"
#include "server/app/dispatcher.h"
#include "server/app/run_limits.h"
#include "server/app/run_stops.h"
#include "server/base/log.h"
#include "server/base/spool.h"
#include "server/base/strings.h"
#include "server/domain/priority.h"
#include "server/domain/run_state.h"
#include "server/storage/runs.h"

namespace normlab::app {
namespace {

using domain::AttemptEnd;
using storage::AttemptRow;
using storage::RunControl;
using storage::StopCause;
using storage::WriteContext;

constexpr size_t kSpoolBatch = 4096;

AttemptEnd EndOf(const AttemptRow& attempt, const executor::ExitReport& report,
                 const std::string& spool_fault) {
  using worker::v1::Finished;
  AttemptEnd end;
  switch (attempt.outcome) {
    case Finished::OUTCOME_SUCCEEDED:
      end.outcome = AttemptEnd::Outcome::kSucceeded;
      break;
    case Finished::OUTCOME_DIVERGED:
      end.outcome = AttemptEnd::Outcome::kDiverged;
      break;
    case Finished::OUTCOME_STOPPED:
      end.outcome = AttemptEnd::Outcome::kStopped;
      break;
    case Finished::OUTCOME_FAILED:
      end.outcome = AttemptEnd::Outcome::kFailed;
      break;
    case Finished::OUTCOME_PAUSED:
      end.outcome = AttemptEnd::Outcome::kPaused;
      break;
    case Finished::OUTCOME_ORPHANED:
      end.outcome = AttemptEnd::Outcome::kOrphaned;
      break;
    case Finished::OUTCOME_LIMIT:
      end.outcome = AttemptEnd::Outcome::kLimit;
      break;
    case Finished::OUTCOME_UNREADABLE:
      end.outcome = AttemptEnd::Outcome::kUnreadable;
      break;
    default:
      break;
  }
  end.outcome_reason = attempt.outcome_reason;
  if (end.outcome == AttemptEnd::Outcome::kPaused && attempt.checkpoint_step == 0) {
    // Nothing to go on from: steps would be lost without a word.
    end.outcome = AttemptEnd::Outcome::kFailed;
    end.outcome_reason = "the trainer paused without a checkpoint";
  }
  end.exit_code = report.exit_code;
  end.exit_signal = report.exit_signal;
  end.lost = report.lost;
  end.detail = report.detail;
  end.last_step = attempt.last_step;
  end.max_rss_bytes = report.max_rss_bytes;
  if (!spool_fault.empty()) StrAppend(&end.detail, "; its spool could not be read: ", spool_fault);
  return end;
}

// What was noted with its last records if it began in another boot.
double SecondsSinceLaunch(const AttemptRow& attempt) {
  if (attempt.shepherd_boot_id != BootId()) return attempt.run_seconds;
  return std::max(0.0, BootSeconds() - attempt.began);
}

}  // namespace

bool Dispatcher::WorthRetrying(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status) ||
         absl::IsInternal(status);
}

// --- recovery ---

absl::Status Dispatcher::RecoverOne(const v1::Run& run) {
  AttemptRow attempt;
  absl::Status status = store_.Read([&](storage::Database& database) {
    absl::StatusOr<AttemptRow> latest = storage::ReadLatestAttempt(database, run.id());
    if (latest.ok()) attempt = *std::move(latest);
    return latest.status();
  });
  if (!status.ok()) return status;
  std::optional<executor::ProcessIdentity> shepherd;
  if (attempt.shepherd_pid) {
    shepherd = executor::ProcessIdentity{static_cast<pid_t>(*attempt.shepherd_pid),
                                         static_cast<uint64_t>(attempt.shepherd_start_ticks),
                                         attempt.shepherd_boot_id};
  } else {
    shepherd = executor_->FindShepherd(DirectoryOf(attempt));
  }
  const executor::AttemptKey key{run.id(), attempt.number};
  if (!shepherd && run.state() == v1::Run::STATE_RUNNING) {
    // It had been running, and then somebody removed its folder.
    Exit gone = {.key = key};
    gone.report.lost = true;
    gone.report.detail = "no trace of its processes is left";
    MutexLock lock(mutex_);
    exits_.push_back(std::move(gone));
    return absl::OkStatus();
  }
  if (!shepherd) return Requeue(attempt, "");
  options_.devices->Take({.run = run.id(),
                          .name = run.display_name(),
                          .user = run.user(),
                          .priority = domain::PriorityNumber(run.priority()).value_or(0),
                          .preemptible = run.effective_spec().preemptible(),
                          .exclusive = attempt.exclusive,
                          .memory_bytes = attempt.gpu_memory_bytes},
                         scheduler::SplitDevices(attempt.device));
  status = executor_->Adopt(key, *shepherd, DirectoryOf(attempt));
  if (!status.ok()) return status;
  LogInfo("run taken over", {{"run", run.id()},
                             {"attempt", StrCat(attempt.number)},
                             {"shepherd", StrCat(shepherd->pid)}});
  // One that is pausing is told so when its trainer calls. Who cancelled before the line above
  // found nothing to end, so the state counts that the run has now.
  v1::Run::State now = v1::Run::STATE_UNSPECIFIED;
  RunControl control;
  std::optional<double> seconds_left;
  status = store_.Read([&](storage::Database& database) -> absl::Status {
    const absl::StatusOr<v1::Run> read = storage::ReadRun(database, run.id());
    const auto control_read = storage::ReadRunControl(database, run.id());
    auto attempts = storage::ReadAttempts(database, run.id());
    for (const absl::Status& part : {read.status(), control_read.status(), attempts.status()}) {
      if (!part.ok()) return part;
    }
    now = read->state();
    control = *control_read;
    attempts->back().run_seconds = SecondsSinceLaunch(attempt);
    seconds_left = SecondsLeft(read->effective_spec(), *attempts, control.limits_from);
    return absl::OkStatus();
  });
  if (now == v1::Run::STATE_CANCELLING) executor_->Terminate(key, options_.cancel_grace);
  if (seconds_left) WatchTime(attempt, *seconds_left);
  if (now == v1::Run::STATE_PAUSING && control.stop_cause != StopCause::kNone) {
    GiveGrace(attempt);
  }
  return status;
}

// The attempt's processes were never started (or never got as far as saying so, in which case the
// trainer is turned away when it calls): the run goes back into the queue, or is paused, as asked.
absl::Status Dispatcher::Requeue(const AttemptRow& attempt, const std::string& wait_reason) {
  LogInfo("attempt was not launched", {{"run", attempt.run}, {"attempt", StrCat(attempt.number)}});
  const absl::Status status = store_.writer().Write([&](WriteContext& context) -> absl::Status {
    storage::AttemptEndRow end;
    end.reason = wait_reason.empty() ? "it was never launched" : wait_reason;
    if (auto status = storage::EndAttempt(context, attempt.id, end); !status.ok()) return status;
    store_.attempt_log().Forget(attempt.id);
    const auto control = storage::ReadRunControl(context.database, attempt.run);
    if (!control.ok()) return control.status();
    return storage::UpdateRun(context, attempt.run, [&](v1::Run& changed) {
      if (changed.state() == v1::Run::STATE_STARTING) {
        changed.set_state(v1::Run::STATE_QUEUED);
        changed.set_wait_reason(wait_reason);
      } else if (changed.state() == v1::Run::STATE_CANCELLING) {
        changed.set_state(v1::Run::STATE_CANCELLED);
        changed.set_end_reason("cancelled before the first step");
      } else if (changed.state() == v1::Run::STATE_PAUSING) {
        // Where it was to go on by itself, it does; its time counts when it has begun.
        const bool by_a_person = control->stop_cause == StopCause::kNone;
        changed.set_state(by_a_person ? v1::Run::STATE_PAUSED : v1::Run::STATE_QUEUED);
        if (!by_a_person) changed.set_wait_reason(wait_reason);
      }
      return absl::OkStatus();
    });
  });
  // The spool may have been made; nobody has written into it.
  std::error_code ignored;
  if (status.ok()) std::filesystem::remove(DirectoryOf(attempt) / "spool", ignored);
  return status;
}

// --- ending ---

// Everything in it is stored; only one that could not be read is worth keeping.
void Dispatcher::DropSpool(const AttemptRow& attempt, bool readable) const {
  const std::filesystem::path spool = DirectoryOf(attempt) / "spool";
  std::error_code ignored;  // it is not there, or the next start tries again
  if (readable) {
    std::filesystem::remove(spool, ignored);
  } else {
    std::filesystem::rename(spool, DirectoryOf(attempt) / "spool.unreadable", ignored);
  }
}

void Dispatcher::DropLeftoverSpools() {
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(options_.data_dir / "attempts", error)) {
    if (!std::filesystem::exists(entry.path() / "spool", error)) continue;
    const std::string name = entry.path().filename();
    std::vector<AttemptRow> attempts;
    const absl::Status read = store_.Read([&](storage::Database& database) {
      auto rows = storage::ReadAttempts(database, name.substr(0, name.rfind('-')));
      if (rows.ok()) attempts = *std::move(rows);
      return rows.status();
    });
    if (!read.ok()) {
      LogWarning("a spool was left", {{"attempt", name}, {"error", std::string(read.message())}});
      continue;
    }
    for (const AttemptRow& attempt : attempts) {
      if (DirectoryOf(attempt) != entry.path() || !attempt.end_time) continue;
      absl::StatusOr<SpoolReader> reader = SpoolReader::Open(entry.path() / "spool");
      while (reader.ok() && reader->Next()) {
      }
      DropSpool(attempt, reader.ok() && reader->status().ok());
    }
  }
}

// Stores what is left in the attempt's spool. Returns what was wrong with the spool, if anything;
// `status` is the store's.
std::string Dispatcher::ReadOutSpool(const AttemptRow& attempt, absl::Status& status) {
  absl::StatusOr<SpoolReader> reader = SpoolReader::Open(DirectoryOf(attempt) / "spool");
  if (!reader.ok()) {
    return absl::IsNotFound(reader.status()) ? "" : std::string(reader.status().message());
  }
  std::vector<std::string> records;
  uint64_t first = 0;
  const auto store = [&] {
    if (records.empty() || !status.ok()) return;
    status = store_.writer().Write([&](WriteContext& context) {
      return store_.attempt_log().Append(context, attempt.id, first, records);
    });
    records.clear();
  };
  while (status.ok() && reader->Next()) {
    if (reader->bytes().empty()) continue;  // the ring's own first record
    if (records.empty()) first = reader->sequence();
    records.emplace_back(reader->bytes());
    if (records.size() == kSpoolBatch) store();
  }
  store();
  if (!status.ok() && !WorthRetrying(status)) {
    std::string fault(status.message());
    status = absl::OkStatus();
    return fault;
  }
  return std::string(reader->status().message());
}

absl::StatusOr<Dispatcher::Ended> Dispatcher::WriteEnd(WriteContext& context, const Exit& exit,
                                                       const std::string& spool_fault) {
  absl::StatusOr<std::vector<AttemptRow>> attempts =
      storage::ReadAttempts(context.database, exit.key.run);
  if (!attempts.ok()) return attempts.status();
  const absl::StatusOr<v1::Run> run = storage::ReadRun(context.database, exit.key.run);
  if (!run.ok()) return run.status();
  const AttemptRow& row = attempts->back();
  if (!domain::IsActive(run->state()) || row.number != exit.key.attempt) {
    return absl::FailedPreconditionError(StrCat("attempt ", exit.key.attempt, " has ended before"));
  }
  AttemptEnd end = EndOf(row, exit.report, spool_fault);
  end.never_started = exit.never_started;
  const absl::StatusOr<RunControl> before = storage::ReadRunControl(context.database, exit.key.run);
  if (!before.ok()) return before.status();
  if (exit.report.elapsed_seconds) attempts->back().run_seconds = *exit.report.elapsed_seconds;
  const AfterAttempt after = DecideAfterAttempt(
      {.run = *run,
       .control = *before,
       .end = end,
       .attempts = *attempts,
       .checkpoints = options_.files->Checkpoints(exit.key.run),
       .makes_room_for = MakesRoomFor(context.database, *before),
       .lost_device = options_.devices->FaultOf(scheduler::SplitDevices(row.device))});
  const storage::AttemptEndRow note = {.max_rss_bytes = exit.report.max_rss_bytes,
                                       .cpu_seconds = exit.report.cpu_seconds,
                                       .run_seconds = exit.report.elapsed_seconds,
                                       .reason = after.attempt_reason,
                                       .interrupted = after.interrupted,
                                       .abandoned = after.start_afresh};
  if (auto status = storage::EndAttempt(context, row.id, note); !status.ok()) return status;
  store_.attempt_log().Forget(row.id);
  RunControl control = *before;
  if (after.tried_again) ++control.tries;
  Ended ended{.state = after.state, .reason = after.reason};
  if (after.pause.count() > 0) {
    control.not_before = context.wall_micros + std::chrono::microseconds(after.pause).count();
    ended.held_back =
        HeldBack{.not_before = *control.not_before, .until = options_.clock->Now() + after.pause};
  }
  // It waits, or has ended, for another reason.
  if (after.tried_again || after.interrupted) control.ClearStop();
  if (control != *before) {
    absl::Status noted = storage::WriteRunControl(context, exit.key.run, control);
    if (!noted.ok()) return noted;
  }
  const absl::Status updated = storage::UpdateRun(context, exit.key.run, [&](v1::Run& changed) {
    changed.set_state(after.state);
    if (after.state == v1::Run::STATE_QUEUED) changed.set_wait_reason(after.reason);
    if (!domain::IsTerminal(after.state)) return absl::OkStatus();
    changed.set_end_reason(after.reason);
    if (end.exit_code) changed.set_exit_code(*end.exit_code);
    if (end.exit_signal) changed.set_exit_signal(*end.exit_signal);
    return absl::OkStatus();
  });
  if (!updated.ok()) return updated;
  return ended;
}

absl::Status Dispatcher::Finish(const Exit& exit) {
  AttemptRow attempt;
  absl::Status status = store_.Read([&](storage::Database& database) {
    absl::StatusOr<std::vector<AttemptRow>> rows = storage::ReadAttempts(database, exit.key.run);
    if (!rows.ok()) return rows.status();
    for (AttemptRow& row : *rows) {
      if (row.number == exit.key.attempt) attempt = std::move(row);
    }
    return attempt.id == 0 ? absl::NotFoundError("there is no such attempt") : absl::OkStatus();
  });
  if (!status.ok()) return status;
  ForgetTimers(exit.key);
  if (!exit.put_back.empty()) {
    status = Requeue(attempt, exit.put_back);
    if (status.ok()) options_.devices->Release(exit.key.run);
    return status;
  }
  const std::string spool_fault = ReadOutSpool(attempt, status);
  if (!status.ok()) return status;
  Ended ended;
  status = store_.writer().Write([&](WriteContext& context) -> absl::Status {
    absl::StatusOr<Ended> written = WriteEnd(context, exit, spool_fault);
    if (written.ok()) ended = *std::move(written);
    return written.status();
  });
  if (!status.ok()) return status;
  LogInfo("attempt ended", {{"run", exit.key.run},
                            {"state", std::string(domain::StateWord(ended.state))},
                            {"reason", ended.reason}});
  if (ended.held_back) held_back_[exit.key.run] = *ended.held_back;
  DropSpool(attempt, spool_fault.empty());
  {
    MutexLock lock(mutex_);
    trainers_.erase(attempt.id);
  }
  options_.devices->Release(exit.key.run);
  return absl::OkStatus();
}

}  // namespace normlab::app
