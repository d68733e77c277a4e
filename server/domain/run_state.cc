#include "server/domain/run_state.h"

#include <csignal>
#include <cstring>

#include "server/base/strings.h"

namespace normlab::domain {
namespace {

using v1::Run;

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? StrCat("signal ", signal)
                         : StrCat("signal ", signal, " (SIG", name, ")");
}

std::string WithStep(std::string reason, int64_t last_step) {
  return StrCat(reason,
                last_step > 0 ? StrCat(" after step ", last_step) : " before the first step");
}

StateAndReason StateWithoutOutcome(const AttemptEnd& end) {
  if (end.never_started) {
    return {Run::STATE_FAILED, StrCat("the trainer could not be started: ", end.detail)};
  }
  if (end.lost) {
    return {Run::STATE_FAILED,
            StrCat(WithStep("the trainer was lost", end.last_step), ": ", end.detail)};
  }
  if (end.exit_signal) {
    std::string reason =
        WithStep(StrCat("the trainer was ended by ", SignalName(*end.exit_signal)), end.last_step);
    if (*end.exit_signal == SIGKILL) {
      StrAppend(&reason, "; if nobody killed it, the machine ran out of memory (it had used ",
                end.max_rss_bytes >> 20, " MiB)");
    }
    return {Run::STATE_FAILED, reason};
  }
  return {Run::STATE_FAILED,
          StrCat(WithStep(StrCat("the trainer exited with code ", end.exit_code.value_or(-1),
                                 " without a result"),
                          end.last_step),
                 "; its log says more")};
}

}  // namespace

bool WasInterrupted(const AttemptEnd& end) {
  using Outcome = AttemptEnd::Outcome;
  // Stopped, but not by us.
  if (end.outcome == Outcome::kOrphaned || end.outcome == Outcome::kStopped) return true;
  if (end.outcome != Outcome::kNone || end.never_started) return false;
  if (end.lost) return true;
  switch (end.exit_signal.value_or(0)) {
    case SIGKILL:
    case SIGTERM:
    case SIGHUP:
    case SIGINT:
    case SIGPWR:
    case SIGXCPU:
      return true;
    default:
      return false;
  }
}

bool IsTerminal(RunState state) { return state >= Run::STATE_SUCCEEDED; }

bool IsActive(RunState state) {
  return state == Run::STATE_STARTING || state == Run::STATE_RUNNING ||
         state == Run::STATE_PAUSING || state == Run::STATE_CANCELLING;
}

bool MayFollow(RunState from, RunState to) {
  if (IsTerminal(from)) return to == Run::STATE_QUEUED && from != Run::STATE_SUCCEEDED;
  switch (to) {
    case Run::STATE_QUEUED:
      return from == Run::STATE_STARTING || from == Run::STATE_RUNNING ||
             from == Run::STATE_PAUSING || from == Run::STATE_PAUSED;
    case Run::STATE_STARTING:
      return from == Run::STATE_QUEUED;
    case Run::STATE_RUNNING:
      return from == Run::STATE_STARTING;
    case Run::STATE_PAUSING:
      return from == Run::STATE_STARTING || from == Run::STATE_RUNNING;
    case Run::STATE_PAUSED:
      return from == Run::STATE_QUEUED || (IsActive(from) && from != Run::STATE_CANCELLING);
    case Run::STATE_CANCELLING:
      return from == Run::STATE_STARTING || from == Run::STATE_RUNNING ||
             from == Run::STATE_PAUSING;
    case Run::STATE_CANCELLED:
      return from == Run::STATE_QUEUED || from == Run::STATE_STARTING ||
             from == Run::STATE_PAUSED || from == Run::STATE_CANCELLING;
    case Run::STATE_SUCCEEDED:
    case Run::STATE_FAILED:
    case Run::STATE_DIVERGED:
    case Run::STATE_TIMED_OUT:
      return IsActive(from);
    default:
      return false;
  }
}

std::string_view StateWord(RunState state) {
  switch (state) {
    case Run::STATE_QUEUED:
      return "queued";
    case Run::STATE_STARTING:
      return "starting";
    case Run::STATE_RUNNING:
      return "running";
    case Run::STATE_PAUSING:
      return "pausing";
    case Run::STATE_PAUSED:
      return "paused";
    case Run::STATE_CANCELLING:
      return "cancelling";
    case Run::STATE_SUCCEEDED:
      return "succeeded";
    case Run::STATE_FAILED:
      return "failed";
    case Run::STATE_CANCELLED:
      return "cancelled";
    case Run::STATE_DIVERGED:
      return "diverged";
    case Run::STATE_TIMED_OUT:
      return "timed out";
    default:
      return "unknown";
  }
}

StateAndReason StateAfter(const AttemptEnd& end, bool cancelling) {
  using Outcome = AttemptEnd::Outcome;
  switch (end.outcome) {
    case Outcome::kSucceeded:
      return {Run::STATE_SUCCEEDED, ""};
    case Outcome::kDiverged:
      return {Run::STATE_DIVERGED, end.outcome_reason};
    case Outcome::kFailed:
      return {Run::STATE_FAILED, end.outcome_reason};
    case Outcome::kLimit:
      return {Run::STATE_TIMED_OUT, end.outcome_reason};
    case Outcome::kPaused:
      if (cancelling) return {Run::STATE_CANCELLED, WithStep("cancelled", end.last_step)};
      return {Run::STATE_PAUSED, ""};
    case Outcome::kStopped:
      if (cancelling) return {Run::STATE_CANCELLED, WithStep("cancelled", end.last_step)};
      // Stopped, but not by us: by a signal from outside.
      return {Run::STATE_FAILED,
              WithStep(end.outcome_reason.empty()
                           ? std::string("the trainer was told to stop from outside normlab")
                           : StrCat("the trainer stopped: ", end.outcome_reason),
                       end.last_step)};
    case Outcome::kOrphaned:
      if (cancelling) return {Run::STATE_CANCELLED, WithStep("cancelled", end.last_step)};
      return {Run::STATE_FAILED,
              WithStep(StrCat("the trainer stopped: ", end.outcome_reason), end.last_step)};
    case Outcome::kUnreadable:
      if (cancelling) return {Run::STATE_CANCELLED, "cancelled"};
      return {Run::STATE_FAILED,
              StrCat("the checkpoint to go on from cannot be read: ", end.outcome_reason)};
    case Outcome::kNone:
      if (cancelling) return {Run::STATE_CANCELLED, WithStep("cancelled", end.last_step)};
      return StateWithoutOutcome(end);
  }
  return {Run::STATE_FAILED, "unknown outcome"};
}

}  // namespace normlab::domain
