#include "server/app/progress_board.h"

#include "server/domain/run_state.h"

namespace normlab::app {

void ProgressBoard::Note(const std::vector<domain::EventPtr>& events) {
  MutexLock lock(mutex_);
  for (const domain::EventPtr& event : events) {
    if (event->message().has_progress()) {
      progress_[event->run()] = event->message().progress().progress();
    } else if (event->message().has_end() ||
               event->message().run().state() == v1::Run::STATE_PAUSED) {
      progress_.erase(event->run());
    }
  }
}

void ProgressBoard::Complete(v1::Run& run) const {
  if (!domain::IsActive(run.state())) return;
  MutexLock lock(mutex_);
  const auto found = progress_.find(run.id());
  if (found == progress_.end() || found->second.steps_per_second() <= 0) return;
  v1::Progress& progress = *run.mutable_progress();
  progress.set_steps_per_second(found->second.steps_per_second());
  progress.set_remaining_seconds(static_cast<double>(progress.steps() - progress.step()) /
                                 progress.steps_per_second());
}

double ProgressBoard::StepsPerSecond(const std::string& run) const {
  MutexLock lock(mutex_);
  const auto found = progress_.find(run);
  return found == progress_.end() ? 0 : found->second.steps_per_second();
}

}  // namespace normlab::app
