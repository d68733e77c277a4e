#include "client/overall_progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/term/style.h"
#include "client/term/text.h"

namespace normlab::client {
namespace {

using normlab::v1::Run;

// What starting and ending a trainer takes, as arithmetic: about half a second. Without it an
// experiment of one-step runs would be no work at all.
constexpr double kStartFlops = 1e10;

double TotalWork(const WatchedRun& run) {
  const double step = run.run.summary().flops_per_step();
  return kStartFlops + step * static_cast<double>(run.Steps());
}

double DoneWork(const WatchedRun& run) {
  if (run.ended || IsTerminal(run.run.state())) return TotalWork(run);
  if (run.Step() == 0) return 0;
  const double step = run.run.summary().flops_per_step();
  return kStartFlops / 2 + step * static_cast<double>(run.Step());
}

bool IsActive(Run::State state) {
  return state == Run::STATE_STARTING || state == Run::STATE_RUNNING ||
         state == Run::STATE_PAUSING || state == Run::STATE_CANCELLING;
}

}  // namespace

OverallProgress ProgressOf(const WatchModel& model) {
  OverallProgress progress;
  double done = 0, total = 0;
  for (const WatchedRun& run : model.runs()) {
    ++progress.runs;
    progress.ended += run.ended || IsTerminal(run.run.state());
    progress.active += IsActive(run.run.state());
    done += DoneWork(run);
    total += TotalWork(run);
  }
  progress.fraction = total > 0 ? std::clamp(done / total, 0.0, 1.0) : 0;
  return progress;
}

std::string ProgressText(const OverallProgress& progress, double remaining_seconds) {
  std::string text = fmt::format("{} of {} runs ended", progress.ended, progress.runs);
  if (progress.active > 0) text += fmt::format(", {} running", progress.active);
  if (remaining_seconds < 0) return text;
  return text + ", about " + DurationText(remaining_seconds) + " left";
}

double RemainingSeconds(const OverallProgress& progress, double start_fraction,
                        double elapsed_seconds) {
  const double done = progress.fraction - start_fraction;
  if (done <= 0 || elapsed_seconds <= 0) return -1;
  return elapsed_seconds * (1 - progress.fraction) / done;
}

}  // namespace normlab::client
