// The end of a whole experiment, asked for by somebody.
#include <utility>

#include "server/app/audit_lines.h"
#include "server/app/dispatcher.h"
#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/domain/run_state.h"
#include "server/storage/audit.h"
#include "server/storage/experiments.h"
#include "server/storage/run_control.h"
#include "server/storage/runs.h"

namespace normlab::app {
namespace {

using storage::AttemptRow;
using storage::WriteContext;
using v1::Run;

absl::Status NotYours(std::string_view what, const std::string& owner) {
  return absl::PermissionDeniedError(
      StrCat(what, " belongs to ", owner, "; only its owner or an admin may do that"));
}

void Cancel(Run& run, const std::string& user) {
  if (domain::IsActive(run.state())) {
    run.set_state(Run::STATE_CANCELLING);
  } else {
    run.set_end_reason(StrCat("cancelled by ", user, " with its experiment while it was ",
                              domain::StateWord(run.state())));
    run.set_state(Run::STATE_CANCELLED);
  }
  run.clear_wait_reason();
}

// Whatever the server had told it to stop for no longer matters.
absl::Status ForgetStop(WriteContext& context, const std::string& run) {
  absl::StatusOr<storage::RunControl> control = storage::ReadRunControl(context.database, run);
  if (!control.ok()) return control.status();
  if (control->stop_cause == storage::StopCause::kNone) return absl::OkStatus();
  control->ClearStop();
  return storage::WriteRunControl(context, run, *control);
}

// Nothing when the run has ended meanwhile: the end of one before it may have taken it along.
absl::Status CancelOne(WriteContext& context, const storage::UnendedRun& run,
                       const domain::Actor& who) {
  Run after;
  bool ended = false;
  absl::Status status = storage::UpdateRun(context, run.id, [&](Run& changed) {
    ended = domain::IsTerminal(changed.state());
    if (ended) return absl::CancelledError("it has ended");
    Cancel(changed, who.user);
    after = changed;
    return absl::OkStatus();
  });
  if (ended) return absl::OkStatus();
  if (status.ok()) status = ForgetStop(context, run.id);
  if (!status.ok()) return status;
  return storage::WriteAudit(context, who, StateLine("cancel", after, run.state));
}

}  // namespace

absl::Status Dispatcher::CancelExperiment(const std::string& experiment, const domain::Actor& who,
                                          bool everybodys) {
  std::vector<AttemptRow> attempts;  // whose processes are to end
  size_t count = 0;
  const absl::Status status = store_.writer().Write([&](WriteContext& context) -> absl::Status {
    const auto owner = storage::ReadExperimentUser(context.database, experiment);
    if (!owner.ok()) return owner.status();
    if (!everybodys && *owner != who.user) {
      return NotYours(StrCat("experiment ", experiment), *owner);
    }
    // Newest first: those that wait for others come before them, and so are cancelled for what was
    // asked and not for what they waited for.
    const auto runs = storage::ReadUnendedRuns(context.database, experiment);
    if (!runs.ok()) return runs.status();
    count = runs->size();
    for (const storage::UnendedRun& run : *runs) {
      if (!everybodys && run.user != who.user) return NotYours(StrCat("run ", run.id), run.user);
      if (auto ended = CancelOne(context, run, who); !ended.ok()) return ended;
      if (!domain::IsActive(run.state)) continue;
      absl::StatusOr<AttemptRow> attempt = storage::ReadLatestAttempt(context.database, run.id);
      if (!attempt.ok()) return attempt.status();
      attempts.push_back(*std::move(attempt));
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  LogInfo("experiment cancelled",
          {{"experiment", experiment}, {"by", who.user}, {"runs", StrCat(count)}});
  for (const AttemptRow& attempt : attempts) EndProcesses(attempt);
  Wake();  // others may wait behind those that were queued
  return absl::OkStatus();
}

}  // namespace normlab::app
