// The part of the dispatcher that decides who starts, and says what the others wait for.
#include <map>
#include <system_error>
#include <utility>

#include "server/app/dispatcher.h"
#include "server/app/run_stops.h"
#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/storage/runs.h"

namespace normlab::app {
namespace {

using scheduler::Waiting;

constexpr size_t kExplained = 50;  // queued runs whose wait reason is kept up to date on disk
constexpr std::chrono::milliseconds kStartRetry(2000);  // of a start that failed
constexpr std::chrono::milliseconds kNotePause(1000);   // between two rounds of writing reasons
constexpr uint64_t kRoomForStart = 16 << 20;            // bytes: a spool and some rows

}  // namespace

// Whatever it was that failed is not for ever, and not to be tried in a tight loop.
void Dispatcher::TryStartingLater() {
  start_again_ = true;
  start_not_before_ = options_.clock->Now() + kStartRetry;
}

void Dispatcher::StartQueued() {
  if (StartsNothing()) return;
  if (start_again_ && options_.clock->Now() < start_not_before_) return;
  absl::StatusOr<scheduler::Plan> plan =
      queue_.MakePlan([this](const std::string& run) { return IsHeldBack(run); });
  if (!plan.ok()) {
    LogError("the queue could not be read", {{"error", std::string(plan.status().message())}});
    TryStartingLater();
    return;
  }
  start_again_ = false;
  std::string reason;
  if (!plan->start.empty() && !HasDiskSpace(reason)) {
    std::map<std::string, std::string> reasons;
    for (const scheduler::Placement& placement : plan->start) reasons[placement.run] = reason;
    plan->start.clear();
    StoreReasons(reasons);
    TryStartingLater();
  }
  for (const scheduler::Preemption& preemption : plan->preempt) MakeWay(preemption);
  for (const scheduler::Placement& placement : plan->start) StartOne(placement);
  queue_.NoteChange();
  NoteWaiting();
}

void Dispatcher::MakeWay(const scheduler::Preemption& preemption) {
  const absl::Status status = Preempt(preemption.run, preemption.for_run);
  // It has ended or been stopped since it was chosen: its devices become free anyway.
  if (status.ok() || absl::IsFailedPrecondition(status) || absl::IsNotFound(status)) return;
  LogError("a run could not be made to make way",
           {{"run", preemption.run}, {"error", std::string(status.message())}});
  TryStartingLater();
}

bool Dispatcher::HasDiskSpace(std::string& reason) const {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(options_.data_dir, error);
  if (error || space.available >= kRoomForStart) return true;
  reason = StrCat("waits for disk space: ", space.available >> 20, " MiB are free in ",
                  options_.data_dir.string(), " and a run needs ", kRoomForStart >> 20);
  return false;
}

// Watchers are told by what is written; who asks gets the latest, with times, from memory.
void Dispatcher::NoteWaiting() {
  const auto now = options_.clock->Now();
  note_again_ = now < note_not_before_;
  if (note_again_) return;
  note_not_before_ = now + kNotePause;
  const absl::StatusOr<std::vector<Waiting>> expected = queue_.First(kExplained);
  if (!expected.ok()) {
    LogWarning("no forecast of the queue", {{"error", std::string(expected.status().message())}});
    return;
  }
  std::map<std::string, std::string> reasons;
  for (const Waiting& waiting : *expected) {
    if (reasons.size() == kExplained) break;
    // What keeps these from starting was written by who knows.
    if (waiting.cause == Waiting::Cause::kNext || waiting.cause == Waiting::Cause::kTime) continue;
    if (IsHeldBack(waiting.run)) continue;
    reasons[waiting.run] = waiting.reason;
  }
  StoreReasons(reasons);
}

void Dispatcher::StoreReasons(const std::map<std::string, std::string>& reasons) {
  for (const auto& [run, reason] : reasons) {
    const auto before = wait_reasons_.find(run);
    if (before != wait_reasons_.end() && before->second == reason) continue;
    store_.writer().Submit(
        [run = run, reason = reason](storage::WriteContext& context) {
          return storage::UpdateRun(context, run, [&](v1::Run& changed) {
            if (changed.state() != v1::Run::STATE_QUEUED) {
              return absl::FailedPreconditionError("it waits no longer");
            }
            changed.set_wait_reason(StrCat(WhyItWasStopped(context.database, run), reason));
            return absl::OkStatus();
          });
        },
        nullptr);
  }
  wait_reasons_ = reasons;
}

}  // namespace normlab::app
