#include "server/app/after_attempt.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "server/app/next_attempt.h"
#include "server/app/run_limits.h"
#include "server/base/strings.h"

namespace normlab::app {
namespace {

using domain::AttemptEnd;
using storage::AttemptRow;
using storage::StopCause;
using v1::Run;

std::string Seconds(double seconds) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.1f s", seconds);
  return text;
}

std::string TimeLimitReason(const EndedAttempt& ended) {
  const AttemptRow& latest = ended.attempts.back();
  const v1::RunSpec& spec = ended.run.effective_spec();
  std::string reason =
      StrCat("stopped after ", Seconds(SecondsRun(ended.attempts, ended.control.limits_from)),
             ", its time_limit is ", Seconds(spec.time_limit()), ", ");
  StrAppend(&reason, latest.last_step > 0
                         ? StrCat("behind step ", latest.last_step, " of ", spec.steps())
                         : "before its first step");
  const int64_t checkpoint = std::max(latest.checkpoint_step, latest.resumed_from_step);
  if (ended.end.outcome != AttemptEnd::Outcome::kPaused) {
    StrAppend(&reason, "; it did not end in time");
    StrAppend(&reason, checkpoint > 0 ? StrCat(", its latest checkpoint is of step ", checkpoint)
                                      : " and has no checkpoint");
  }
  return reason;
}

// Why a run that would go on does not; absent when it may.
std::optional<std::string> LimitReached(const EndedAttempt& ended) {
  const v1::RunSpec& spec = ended.run.effective_spec();
  const std::optional<double> left = SecondsLeft(spec, ended.attempts, ended.control.limits_from);
  if (ended.control.stop_cause == StopCause::kTime || (left && *left <= 0)) {
    return TimeLimitReason(ended);
  }
  // Its checkpoint at the limit is written, and then its trainer was killed before it could say so.
  const int64_t limit = StepLimit(spec, ended.attempts, ended.control.limits_from);
  if (limit > 0 && ended.attempts.back().checkpoint_step >= limit) {
    return StrCat("stopped behind step ", limit, ", its step_limit, of ", spec.steps());
  }
  return std::nullopt;
}

std::string GoesOn(const EndedAttempt& ended) {
  return FindStartingPoint(ended.attempts, ended.run.effective_spec().steps(), ended.checkpoints)
      .text;
}

// A person asked for the pause.
bool WasToPause(const EndedAttempt& ended) {
  return ended.run.state() == Run::STATE_PAUSING && ended.control.stop_cause == StopCause::kNone;
}

AfterAttempt AfterFault(const EndedAttempt& ended, const std::string& fault) {
  const int64_t retries = ended.run.effective_spec().retries();
  const int64_t tries = ended.control.tries;
  AfterAttempt after = {.state = Run::STATE_FAILED, .reason = fault, .attempt_reason = fault};
  if (tries >= retries || LimitReached(ended)) {
    if (tries > 0) StrAppend(&after.reason, " (tried again ", tries, " of ", retries, " times)");
    return after;
  }
  after.tried_again = true;
  after.state = WasToPause(ended) ? Run::STATE_PAUSED : Run::STATE_QUEUED;
  if (after.state == Run::STATE_PAUSED) {
    after.reason.clear();
    return after;
  }
  after.pause = PauseAfterFault(tries);
  after.reason = StrCat("tried again in ", after.pause.count(), " s (", tries + 1, " of ", retries,
                        "): ", fault);
  return after;
}

// The checkpoint that it was to go on from is as good as gone, whatever on_interrupt says: nobody
// has interrupted it. There is one less each time.
AfterAttempt AfterUnreadable(const EndedAttempt& ended, AfterAttempt after) {
  const AttemptRow& latest = ended.attempts.back();
  const StartingPoint next =
      FindStartingPoint(ended.attempts, ended.run.effective_spec().steps(), ended.checkpoints);
  if (next.checkpoint && next.checkpoint->attempt == latest.resumed_from_attempt &&
      next.checkpoint->step == latest.resumed_from_step) {
    return AfterFault(ended, after.attempt_reason);  // somebody put it back
  }
  after.state = WasToPause(ended) ? Run::STATE_PAUSED : Run::STATE_QUEUED;
  if (after.state == Run::STATE_QUEUED) {
    after.reason = StrCat(after.attempt_reason, "; it ", next.text);
  }
  return after;
}

// Paused, or ended from outside: the run itself could go on.
AfterAttempt AfterStop(const EndedAttempt& ended, const domain::StateAndReason& plain) {
  AfterAttempt after = {.state = plain.state, .attempt_reason = plain.reason};
  const bool obeyed = plain.state == Run::STATE_PAUSED;
  if (const auto reached = LimitReached(ended)) {
    after.state = Run::STATE_TIMED_OUT;
    after.reason = after.attempt_reason = *reached;
    return after;
  }
  const StopCause cause = ended.control.stop_cause;
  if (cause == StopCause::kPreempted || cause == StopCause::kServer) {
    after.state = Run::STATE_QUEUED;
    const std::string why = cause == StopCause::kServer
                                ? "the server was stopped"
                                : StrCat("paused for ", ended.makes_room_for);
    after.attempt_reason = obeyed ? why : StrCat(why, "; ", plain.reason);
    after.reason = StrCat(after.attempt_reason, "; it ", GoesOn(ended));
    return after;
  }
  if (obeyed) return after;
  if (ended.end.outcome == AttemptEnd::Outcome::kUnreadable) return AfterUnreadable(ended, after);
  const AfterInterruption next =
      DecideAfterInterruption(ended.run, plain.reason, ended.attempts, ended.checkpoints);
  after.state = next.state;
  after.reason = next.reason;
  after.interrupted = true;
  after.start_afresh = next.start_afresh;
  after.pause = next.pause;
  return after;
}

}  // namespace

AfterAttempt DecideAfterAttempt(const EndedAttempt& ended) {
  const bool cancelling = ended.run.state() == Run::STATE_CANCELLING;
  domain::StateAndReason plain = domain::StateAfter(ended.end, cancelling);
  bool stopped = plain.state == Run::STATE_PAUSED || domain::WasInterrupted(ended.end) ||
                 ended.end.outcome == AttemptEnd::Outcome::kUnreadable;
  const bool unfinished = plain.state == Run::STATE_FAILED;
  if (unfinished && ended.control.stop_cause == StopCause::kMemory) {
    return AfterFault(ended, ended.control.stop_detail);
  }
  // Whatever the trainer made of it, the run could go on elsewhere.
  if (unfinished && !ended.lost_device.empty() && !ended.end.never_started) {
    plain.reason = StrCat(ended.lost_device, "; ", plain.reason);
    stopped = true;
  }
  if (!cancelling && stopped) return AfterStop(ended, plain);
  if (!cancelling && plain.state == Run::STATE_FAILED && !ended.end.never_started) {
    return AfterFault(ended, plain.reason);
  }
  AfterAttempt after = {
      .state = plain.state, .reason = plain.reason, .attempt_reason = plain.reason};
  if (plain.state == Run::STATE_CANCELLED && ended.control.stop_cause == StopCause::kEarly) {
    after.reason = after.attempt_reason = ended.control.stop_detail;
  }
  return after;
}

std::chrono::seconds PauseAfterFault(int64_t tries) {
  constexpr std::chrono::seconds kFirst(10);
  constexpr int64_t kDoublings = 6;  // 640 s, more than the longest
  return std::min<std::chrono::seconds>(kFirst * (1 << std::clamp<int64_t>(tries, 0, kDoublings)),
                                        kLongestPause);
}

}  // namespace normlab::app
