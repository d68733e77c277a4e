// What people and trainers ask of the dispatcher: cancel, pause, resume, probe, a trainer's hello.
// Each change of state is in the database first, and only then something is said to a trainer.
#include <filesystem>
#include <utility>

#include "server/app/audit_lines.h"
#include "server/app/dispatcher.h"
#include "server/app/next_attempt.h"
#include "server/app/run_limits.h"
#include "server/base/ids.h"
#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/domain/run_state.h"
#include "server/storage/dependencies.h"
#include "server/storage/lineage.h"
#include "server/storage/runs.h"

namespace normlab::app {
namespace {

using storage::AttemptRow;
using storage::RunControl;
using storage::StopCause;
using storage::WriteContext;
using v1::Run;

absl::Status NotNow(const Run& run, std::string_view what) {
  if (domain::IsTerminal(run.state())) {
    return absl::FailedPreconditionError(
        StrCat("run ", run.id(), " has already ended (", domain::StateWord(run.state()), ")"));
  }
  return absl::FailedPreconditionError(
      StrCat("run ", run.id(), " is ", domain::StateWord(run.state()), what));
}

}  // namespace

absl::Status Dispatcher::Change(const std::string& run_id, const domain::Actor& who,
                                std::string_view action, const RunChange& change,
                                AttemptRow& attempt) {
  return store_.writer().Write([&](WriteContext& context) -> absl::Status {
    const absl::StatusOr<RunControl> before = storage::ReadRunControl(context.database, run_id);
    if (!before.ok()) return before.status();
    RunControl control = *before;
    Run::State state_before = Run::STATE_UNSPECIFIED;
    Run after;
    absl::Status written = storage::UpdateRun(context, run_id, [&](Run& run) {
      state_before = run.state();
      absl::Status changed = change(run, control);
      after = run;
      return changed;
    });
    if (written.ok() && control != *before) {
      written = storage::WriteRunControl(context, run_id, control);
    }
    if (written.ok() && !action.empty() && after.state() != state_before) {
      written = storage::WriteAudit(context, who, StateLine(action, after, state_before));
    }
    if (!written.ok() || !domain::IsActive(after.state())) return written;
    absl::StatusOr<AttemptRow> latest = storage::ReadLatestAttempt(context.database, run_id);
    if (latest.ok()) attempt = *std::move(latest);
    return latest.status();
  });
}

Dispatcher::Trainer Dispatcher::TrainerOf(const AttemptRow& attempt) const {
  MutexLock lock(mutex_);
  const auto found = trainers_.find(attempt.id);
  return found == trainers_.end() ? Trainer() : found->second;
}

// After a cancel is stored. `attempt` has no id when the run was not active.
void Dispatcher::EndProcesses(const AttemptRow& attempt) {
  if (attempt.id == 0) {
    Wake();  // others may wait behind it
    return;
  }
  executor_->Terminate({attempt.run, attempt.number}, options_.cancel_grace);
  TrainerOf(attempt).stop();
}

absl::Status Dispatcher::Cancel(const std::string& run_id, const domain::Actor& who) {
  AttemptRow attempt;
  const absl::Status status = Change(
      run_id, who, "cancel",
      [&](Run& run, RunControl& control) {
        if (domain::IsTerminal(run.state())) return NotNow(run, "");
        control.ClearStop();
        if (domain::IsActive(run.state())) {
          run.set_state(Run::STATE_CANCELLING);
        } else {
          run.set_end_reason(
              StrCat("cancelled by ", who.user, " while it was ", domain::StateWord(run.state())));
          run.set_state(Run::STATE_CANCELLED);
        }
        run.clear_wait_reason();
        return absl::OkStatus();
      },
      attempt);
  if (!status.ok()) return status;
  LogInfo("run cancelled", {{"run", run_id}, {"by", who.user}});
  EndProcesses(attempt);
  return absl::OkStatus();
}

absl::Status Dispatcher::Pause(const std::string& run_id, const domain::Actor& who) {
  AttemptRow attempt;
  bool takes_its_time = false;
  const absl::Status status = Change(
      run_id, who, "pause",
      [&](Run& run, RunControl& control) {
        switch (run.state()) {
          case Run::STATE_QUEUED:
            run.set_state(Run::STATE_PAUSED);
            run.clear_wait_reason();
            return absl::OkStatus();
          case Run::STATE_STARTING:
          case Run::STATE_RUNNING:
            run.set_state(Run::STATE_PAUSING);
            return absl::OkStatus();
          case Run::STATE_PAUSING:
            // One that was to go on by itself now waits for somebody.
            if (control.stop_cause != StopCause::kTime) control.ClearStop();
            takes_its_time = control.stop_cause == StopCause::kNone;
            return absl::OkStatus();
          case Run::STATE_PAUSED:
            return absl::OkStatus();
          default:
            return NotNow(run, " and can no longer be paused");
        }
      },
      attempt);
  if (!status.ok()) return status;
  LogInfo("run to be paused", {{"run", run_id}, {"by", who.user}});
  if (attempt.id == 0) {
    Wake();  // others may wait behind it
  } else {
    if (takes_its_time) TakeGraceBack(attempt);
    TrainerOf(attempt).pause();
  }
  return absl::OkStatus();
}

absl::Status Dispatcher::Resume(const std::string& run_id, const domain::Actor& who) {
  absl::Status status = store_.Read([&](storage::Database& database) -> absl::Status {
    const absl::StatusOr<storage::Checkpoint> latest =
        storage::ReadLatestCheckpoint(database, run_id);
    if (absl::IsNotFound(latest.status())) return absl::OkStatus();  // paused before it had one
    if (!latest.ok()) return latest.status();
    const std::filesystem::path file = options_.files->Checkpoints(run_id) / latest->file;
    std::error_code error;
    if (std::filesystem::is_regular_file(file, error)) return absl::OkStatus();
    // A trainer could not read it; the one before it is gone on from.
    if (std::filesystem::exists(file.string() + ".unreadable", error)) return absl::OkStatus();
    return absl::FailedPreconditionError(StrCat("the checkpoint of step ", latest->step,
                                                " is gone: there is no file ", file.string()));
  });
  // What state the run is in says more than that its checkpoint is gone.
  const absl::Status checkpoint = status;
  AttemptRow none;
  status = Change(
      run_id, who, "resume",
      [&](Run& run, RunControl& control) {
        switch (run.state()) {
          case Run::STATE_PAUSED:
            if (!checkpoint.ok()) return checkpoint;
            run.set_state(Run::STATE_QUEUED);
            control.not_before.reset();  // somebody wants it now
            return absl::OkStatus();
          case Run::STATE_PAUSING:
            return NotNow(run, " still; resume it once it is paused");
          default:
            return NotNow(run, ", not paused");
        }
      },
      none);
  if (!status.ok()) return status;
  LogInfo("run resumed", {{"run", run_id}, {"by", who.user}});
  Wake();
  return absl::OkStatus();
}

absl::Status Dispatcher::Retry(const std::string& run_id, const domain::Actor& who,
                               bool from_start) {
  const absl::Status status = store_.writer().Write([&](WriteContext& context) -> absl::Status {
    if (auto possible = storage::CheckStillPossible(context.database, run_id); !possible.ok()) {
      return possible;
    }
    absl::StatusOr<std::vector<AttemptRow>> attempts =
        storage::ReadAttempts(context.database, run_id);
    if (!attempts.ok()) return attempts.status();
    if (!attempts->empty()) {
      // What was interrupted before counts no more: somebody has looked at it since.
      AttemptRow& latest = attempts->back();
      latest.abandoned = from_start;
      absl::Status noted = storage::SetAbandoned(context, latest.id, from_start);
      if (noted.ok()) noted = storage::SetInterrupted(context, latest.id, false);
      if (!noted.ok()) return noted;
    }
    const RunControl afresh = {.limits_from = attempts->empty() ? 0 : attempts->back().number};
    if (absl::Status noted = storage::WriteRunControl(context, run_id, afresh); !noted.ok()) {
      return noted;
    }
    Run::State before = Run::STATE_UNSPECIFIED;
    Run after;
    absl::Status written = storage::UpdateRun(context, run_id, [&](Run& run) {
      before = run.state();
      if (run.state() == Run::STATE_SUCCEEDED) {
        return absl::FailedPreconditionError(
            StrCat("run ", run_id, " has succeeded; there is nothing left to try again"));
      }
      if (!domain::IsTerminal(run.state())) {
        return NotNow(run, "; only a run that has ended can be tried again");
      }
      const StartingPoint start = FindStartingPoint(*attempts, run.effective_spec().steps(),
                                                    options_.files->Checkpoints(run_id));
      run.set_state(Run::STATE_QUEUED);
      run.set_wait_reason(StrCat("tried again by ", who.user, ": ", start.text));
      run.clear_end_reason();
      run.clear_exit_code();
      run.clear_exit_signal();
      run.clear_end_time();
      after = run;
      return absl::OkStatus();
    });
    if (!written.ok()) return written;
    storage::AuditLine line = StateLine("retry", after, before);
    if (from_start) line.detail += ", from its beginning";
    return storage::WriteAudit(context, who, line);
  });
  if (!status.ok()) return status;
  LogInfo("run tried again", {{"run", run_id}, {"by", who.user}});
  Wake();
  return absl::OkStatus();
}

absl::Status Dispatcher::Probe(const std::string& run_id, const domain::Actor& who) {
  AttemptRow attempt;
  const absl::Status status = store_.Read([&](storage::Database& database) -> absl::Status {
    const absl::StatusOr<Run> run = storage::ReadRun(database, run_id);
    if (!run.ok()) return run.status();
    if (run->state() != Run::STATE_RUNNING) {
      return NotNow(*run, "; only a run that trains can be measured");
    }
    absl::StatusOr<AttemptRow> latest = storage::ReadLatestAttempt(database, run_id);
    if (latest.ok()) attempt = *std::move(latest);
    return latest.status();
  });
  if (!status.ok()) return status;
  if (!TrainerOf(attempt).probe()) {
    return absl::FailedPreconditionError(
        StrCat("the trainer of run ", run_id, " is not connected just now; ask again in a moment"));
  }
  LogInfo("run to be measured", {{"run", run_id}, {"by", who.user}});
  return store_.writer().Write([&](WriteContext& context) {
    return storage::WriteAudit(context, who, {"probe", run_id});
  });
}

// --- trainers ---

absl::StatusOr<Dispatcher::Attached> Dispatcher::Welcome(storage::Database& database,
                                                         const std::string& run_id, int32_t number,
                                                         const std::string& token,
                                                         Run::State& state) const {
  const absl::Status refused = absl::PermissionDeniedError(
      StrCat("attempt ", number, " of run ", run_id, " is not running here"));
  const absl::StatusOr<std::vector<AttemptRow>> attempts = storage::ReadAttempts(database, run_id);
  if (!attempts.ok()) return attempts.status();
  if (attempts->empty()) return refused;
  const AttemptRow& attempt = attempts->back();
  if (attempt.number != number || attempt.end_time.has_value() ||
      !EqualSecrets(attempt.token_sha256, Sha256Hex(token))) {
    return refused;
  }
  absl::StatusOr<Run> run = storage::ReadRun(database, run_id);
  if (!run.ok()) return run.status();
  state = run->state();
  Attached attached;
  attached.attempt_id = attempt.id;
  worker::v1::Assignment& assignment = attached.assignment;
  *assignment.mutable_effective_spec() = run->effective_spec();
  assignment.set_device(attempt.device);
  assignment.set_persisted_sequence(attempt.persisted_sequence);
  // One that has its GPUs for itself may fill them.
  if (!attempt.exclusive) assignment.set_gpu_memory_bytes(attempt.gpu_memory_bytes);
  const absl::StatusOr<RunControl> control = storage::ReadRunControl(database, run_id);
  if (!control.ok()) return control.status();
  assignment.set_step_limit(StepLimit(run->effective_spec(), *attempts, control->limits_from));
  const RunFiles& files = *options_.files;
  assignment.set_checkpoint_directory(files.Checkpoints(run_id).string());
  assignment.set_init_file(files.InitFile(run_id, run->effective_spec()).string());
  assignment.set_text_file(files.TextFile(run->effective_spec()).string());
  if (!attempt.resumed_from_file.empty()) {
    assignment.set_resume_from((files.Checkpoints(run_id) / attempt.resumed_from_file).string());
  }
  return attached;
}

absl::StatusOr<Dispatcher::Attached> Dispatcher::Attach(const std::string& run_id, int32_t number,
                                                        const std::string& token, Trainer trainer) {
  absl::StatusOr<Attached> attached;
  Run::State state = Run::STATE_UNSPECIFIED;
  absl::Status status = store_.Read([&](storage::Database& database) {
    attached = Welcome(database, run_id, number, token, state);
    return attached.status();
  });
  if (!status.ok()) return status;
  if (state == Run::STATE_STARTING) {
    status = store_.writer().Write([&](WriteContext& context) {
      return storage::UpdateRun(context, run_id, [&](Run& changed) {
        if (!domain::IsActive(changed.state())) {
          return absl::PermissionDeniedError(StrCat("run ", run_id, " has ended"));
        }
        if (changed.state() == Run::STATE_STARTING) changed.set_state(Run::STATE_RUNNING);
        return absl::OkStatus();
      });
    });
    if (!status.ok()) return status;
  }
  {
    MutexLock lock(mutex_);
    trainers_[attached->attempt_id] = trainer;
  }
  // Only now, so that a request that found no trainer is seen here.
  status = store_.Read([&](storage::Database& database) {
    absl::StatusOr<Run> run = storage::ReadRun(database, run_id);
    if (run.ok()) state = run->state();
    return run.status();
  });
  if (!status.ok()) return status;
  if (state == Run::STATE_CANCELLING) trainer.stop();
  if (state == Run::STATE_PAUSING) trainer.pause();
  return attached;
}

}  // namespace normlab::app
