#include "server/app/next_attempt.h"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "server/base/strings.h"

namespace normlab::app {
namespace {

using std::chrono::seconds;
using storage::AttemptRow;
using storage::Checkpoint;
using v1::Run;

// It came no further than the attempts before it.
bool WasFruitless(const std::vector<AttemptRow>& attempts, size_t index) {
  const AttemptRow& attempt = attempts[index];
  if (!attempt.interrupted) return false;
  if (!attempt.abandoned) {
    if (attempt.checkpoint_step > 0) return false;
    if (attempt.resumed_from_step > 0) return true;  // the next one begins where it began
  }
  int64_t furthest = 0;
  for (size_t i = 0; i < index; ++i) furthest = std::max(furthest, attempts[i].last_step);
  return attempt.last_step <= furthest;
}

}  // namespace

StartingPoint FindStartingPoint(const std::vector<AttemptRow>& attempts, int64_t steps,
                                const std::filesystem::path& folder) {
  StartingPoint point;
  std::string missing;
  if (!attempts.empty() && !attempts.back().abandoned) {
    for (Checkpoint& checkpoint : storage::CheckpointsOf(attempts)) {
      if (checkpoint.step >= steps) continue;
      std::error_code error;
      if (std::filesystem::is_regular_file(folder / checkpoint.file, error)) {
        point.checkpoint = std::move(checkpoint);
        break;
      }
      StrAppend(&missing, missing.empty() ? "" : ", ", checkpoint.step);
    }
  }
  point.text = point.checkpoint
                   ? StrCat("goes on from the checkpoint of step ", point.checkpoint->step)
                   : std::string("starts from the beginning");
  if (!missing.empty()) {
    StrAppend(&point.text, " (the file of the checkpoint of step ", missing, " is gone)");
  } else if (!point.checkpoint) {
    point.text +=
        attempts.empty() || !attempts.back().abandoned ? " (it had no checkpoint yet)" : "";
  }
  return point;
}

int FruitlessInterruptions(const std::vector<AttemptRow>& attempts) {
  int count = 0;
  for (size_t i = attempts.size(); i > 0 && WasFruitless(attempts, i - 1); --i) ++count;
  return count;
}

seconds PauseAfterInterruption(int fruitless) {
  constexpr seconds kPauses[] = {seconds(1), seconds(5), seconds(30)};
  return kPauses[std::clamp<int>(fruitless, 0, std::size(kPauses) - 1)];
}

AfterInterruption DecideAfterInterruption(const Run& run, const std::string& cause,
                                          std::vector<AttemptRow> attempts,
                                          const std::filesystem::path& folder) {
  const std::string& policy = run.effective_spec().on_interrupt();
  if (policy == "fail") return {.state = Run::STATE_FAILED, .reason = cause};
  AfterInterruption after = {.state = Run::STATE_QUEUED, .start_afresh = policy == "requeue"};
  attempts.back().interrupted = true;
  attempts.back().abandoned = after.start_afresh;
  const int fruitless = FruitlessInterruptions(attempts);
  if (run.state() == Run::STATE_PAUSING) {
    // What was asked for is there: it holds no device and can be resumed.
    after.state = Run::STATE_PAUSED;
    return after;
  }
  if (fruitless >= kFruitlessLimit) {
    return {.state = Run::STATE_FAILED,
            .reason = StrCat("interrupted ", fruitless, " times in a row without coming further; ",
                             "the last time ", cause)};
  }
  after.pause = PauseAfterInterruption(fruitless);
  after.reason = StrCat("interrupted: ", cause, "; it ",
                        FindStartingPoint(attempts, run.effective_spec().steps(), folder).text);
  return after;
}

}  // namespace normlab::app
