// The end of a whole experiment, asked for by somebody.
#include <utility>

#include "server/app/audit_lines.h"
#include "server/app/dispatcher.h"
#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/domain/run_state.h"
#include "server/storage/experiments.h"
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

// The runs that have not ended, newest first: those that wait for others come before them, and so
// are cancelled for what was asked and not for what they waited for.
absl::StatusOr<std::vector<Run>> ReadUnended(storage::Database& database,
                                             const std::string& experiment) {
  storage::RunQuery query;
  query.experiment = experiment;
  query.limit = 1'000'000;
  query.states = {Run::STATE_QUEUED,  Run::STATE_STARTING, Run::STATE_RUNNING,
                  Run::STATE_PAUSING, Run::STATE_PAUSED,   Run::STATE_CANCELLING};
  return storage::ReadRuns(database, query);
}

absl::Status CancelOne(Run& run, const std::string& user) {
  if (domain::IsActive(run.state())) {
    run.set_state(Run::STATE_CANCELLING);
  } else {
    run.set_end_reason(StrCat("cancelled by ", user, " with its experiment while it was ",
                              domain::StateWord(run.state())));
    run.set_state(Run::STATE_CANCELLED);
  }
  run.clear_wait_reason();
  return absl::OkStatus();
}

}  // namespace

absl::Status Dispatcher::CancelExperiment(const std::string& experiment, const domain::Actor& who,
                                          bool everybodys) {
  std::vector<AttemptRow> attempts;  // whose processes are to end
  size_t count = 0;
  const absl::Status status = store_.writer().Write([&](WriteContext& context) -> absl::Status {
    const auto owner = storage::ReadExperimentUser(context.database, experiment);
    if (!owner.ok()) return owner.status();
    if (!everybodys && *owner != who.user)
      return NotYours(StrCat("experiment ", experiment), *owner);
    const absl::StatusOr<std::vector<Run>> runs = ReadUnended(context.database, experiment);
    if (!runs.ok()) return runs.status();
    count = runs->size();
    for (const Run& run : *runs) {
      if (!everybodys && run.user() != who.user)
        return NotYours(StrCat("run ", run.id()), run.user());
      Run after;
      absl::Status ended = storage::UpdateRun(context, run.id(), [&](Run& changed) {
        // The end of one before it may have taken it along.
        const absl::Status cancelled =
            domain::IsTerminal(changed.state()) ? absl::OkStatus() : CancelOne(changed, who.user);
        after = changed;
        return cancelled;
      });
      if (ended.ok() && after.state() != run.state()) {
        ended = storage::WriteAudit(context, who, StateLine("cancel", after, run.state()));
      }
      if (!ended.ok()) return ended;
      if (!domain::IsActive(run.state())) continue;
      absl::StatusOr<AttemptRow> attempt = storage::ReadLatestAttempt(context.database, run.id());
      if (!attempt.ok()) return attempt.status();
      attempts.push_back(*std::move(attempt));
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  LogInfo("experiment cancelled",
          {{"experiment", experiment}, {"by", who.user}, {"runs", StrCat(count)}});
  for (const AttemptRow& attempt : attempts) {
    executor_->Terminate({attempt.run, attempt.number}, options_.cancel_grace);
    TrainerOf(attempt).stop();
  }
  Wake();  // others may wait behind those that were queued
  return absl::OkStatus();
}

}  // namespace normlab::app
