#include "client/storage_progress.h"

#include <fmt/format.h>

#include "client/term/text.h"

namespace normlab::client {

using Clock = std::chrono::steady_clock;

void StorageProgressLine::Show(const normlab::v1::StorageProgress& progress) {
  if (!context_.terminal.smart() || context_.json) return;
  if (progress.stage() != stage_) {
    stage_ = progress.stage();
    stage_start_ = Clock::now();
    stage_first_ = progress.done();
  }
  std::string line = Clean(stage_);
  if (progress.total() > 0) {
    const double seconds = std::chrono::duration<double>(Clock::now() - stage_start_).count();
    const auto done = static_cast<double>(progress.done() - stage_first_);
    line += fmt::format(" {:.0f} %", 100.0 * static_cast<double>(progress.done()) /
                                         static_cast<double>(progress.total()));
    if (seconds > 1 && done > 0) {
      const auto left = static_cast<double>(progress.total() - progress.done());
      line += fmt::format(", {} left", DurationText(seconds * left / done));
    }
  }
  context_.terminal.ShowFrame({Fit(line, context_.terminal.size().columns - 1)});
}

void StorageProgressLine::Clear() {
  if (stage_.empty()) return;
  context_.terminal.ShowFrame({});
  context_.terminal.EndFrame();
  stage_.clear();
}

}  // namespace normlab::client
