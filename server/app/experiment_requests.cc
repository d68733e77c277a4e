// The end of a whole experiment, asked for by somebody.
#include <utility>

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

absl::Status Dispatcher::CancelExperiment(const std::string& experiment, const std::string& user,
                                          bool everybodys) {
  std::vector<AttemptRow> attempts;  // whose processes are to end
  size_t count = 0;
  const absl::Status status = store_.writer().Write([&](WriteContext& context) -> absl::Status {
    const auto owner = storage::ReadExperimentUser(context.database, experiment);
    if (!owner.ok()) return owner.status();
    if (!everybodys && *owner != user) return NotYours(StrCat("experiment ", experiment), *owner);
    // Newest first: those that wait for others come before them, and so are cancelled for what was
    // asked and not for what they waited for.
    const auto runs = storage::ReadUnendedRuns(context.database, experiment);
    if (!runs.ok()) return runs.status();
    count = runs->size();
    for (const storage::UnendedRun& run : *runs) {
      if (!everybodys && run.user != user) return NotYours(StrCat("run ", run.id), run.user);
      bool taken_along = false;  // by the end of one before it
      const absl::Status ended = storage::UpdateRun(context, run.id, [&](Run& changed) {
        taken_along = domain::IsTerminal(changed.state());
        return taken_along ? absl::CancelledError() : CancelOne(changed, user);
      });
      if (!ended.ok() && !taken_along) return ended;
      if (!domain::IsActive(run.state)) continue;
      absl::StatusOr<AttemptRow> attempt = storage::ReadLatestAttempt(context.database, run.id);
      if (!attempt.ok()) return attempt.status();
      attempts.push_back(*std::move(attempt));
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  LogInfo("experiment cancelled",
          {{"experiment", experiment}, {"by", user}, {"runs", StrCat(count)}});
  for (const AttemptRow& attempt : attempts) {
    executor_->Terminate({attempt.run, attempt.number}, options_.cancel_grace);
    TrainerOf(attempt).stop();
  }
  Wake();  // others may wait behind those that were queued
  return absl::OkStatus();
}

}  // namespace normlab::app
