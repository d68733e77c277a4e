#include "client/plain_reporter.h"

#include <fmt/format.h>

#include "client/overall_progress.h"
#include "client/term/live_view.h"
#include "client/term/style.h"
#include "client/term/text.h"
#include "server/export/number_text.h"

namespace normlab::client {
namespace {

using normlab::v1::Run;

constexpr size_t kMostToldOneByOne = 8;

std::string NameOf(const Run& run) {
  return Clean(run.display_name().empty() ? run.id() : run.display_name());
}

std::string StateLine(const Run& run, const std::string& remark) {
  std::string line = fmt::format("{}: {}", NameOf(run), StateWord(run.state()));
  if (run.state() == Run::STATE_RUNNING && run.attempts_size() > 0) {
    line += " on " + Clean(run.attempts(run.attempts_size() - 1).device());
  }
  return remark.empty() ? line : line + ", " + Clean(remark);
}

std::string StepLine(const WatchedRun& run) {
  std::string line = fmt::format("{}: step {}/{}", NameOf(run.run), run.Step(), run.Steps());
  if (!run.loss.values.empty()) {
    line += ", loss " + exporter::ShortNumberText(run.loss.values.back());
  }
  if (!run.gradient_norm.values.empty()) {
    line += ", gradient norm " + exporter::ShortNumberText(run.gradient_norm.values.back());
  }
  const double remaining = RemainingSeconds(run);
  return remaining < 0 ? line : line + ", " + DurationText(remaining) + " left";
}

}  // namespace

std::vector<std::string> PlainReporter::ReportMany(const WatchModel& model,
                                                   double elapsed_seconds) {
  std::vector<std::string> lines;
  for (const WatchedRun& run : model.runs()) {
    Seen& seen = seen_[run.run.id()];
    if (seen.state == run.run.state()) continue;
    seen.state = run.run.state();
    const bool fault = IsTerminal(seen.state) && seen.state != Run::STATE_SUCCEEDED;
    if (fault) lines.push_back(StateLine(run.run, RunRemark(run.run)));
  }
  const OverallProgress progress = ProgressOf(model);
  if (start_fraction_ < 0) start_fraction_ = progress.fraction;
  const int tenth = static_cast<int>(progress.fraction * 10);
  if (tenth > told_tenth_) {
    told_tenth_ = tenth;
    const double remaining =
        tenth < 10 ? RemainingSeconds(progress, start_fraction_, elapsed_seconds) : -1;
    lines.push_back(ProgressText(progress, remaining));
  }
  return lines;
}

std::vector<std::string> PlainReporter::Report(const WatchModel& model, double elapsed_seconds) {
  if (model.runs().size() > kMostToldOneByOne) return ReportMany(model, elapsed_seconds);
  std::vector<std::string> lines;
  for (const WatchedRun& run : model.runs()) {
    if (run.run.state() == Run::STATE_UNSPECIFIED) continue;  // nothing known yet
    // A queued run's estimate changes all the time: only the first reason is told.
    Seen& seen = seen_[run.run.id()];
    const std::string remark = RunRemark(run.run);
    const bool news = seen.state != run.run.state() || (seen.remark.empty() && !remark.empty());
    // Steps first: those behind an end belong before it.
    const int64_t steps = run.Steps();
    const int64_t tenth = steps > 0 ? run.Step() * 10 / steps : 0;
    if (tenth > seen.tenth) {
      seen.tenth = tenth;
      lines.push_back(StepLine(run));
    }
    if (news) {
      seen.state = run.run.state();
      seen.remark = remark;
      lines.push_back(StateLine(run.run, remark));
    }
  }
  return lines;
}

}  // namespace normlab::client
