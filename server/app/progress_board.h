#ifndef NORMLAB_SERVER_APP_PROGRESS_BOARD_H_
#define NORMLAB_SERVER_APP_PROGRESS_BOARD_H_

#include <map>
#include <string>
#include <vector>

#include "normlab/v1/run.pb.h"
#include "server/base/mutex.h"
#include "server/domain/event.h"

namespace normlab::app {

// The progress of runs as last published, for answers that are not streams.
class ProgressBoard {
 public:
  void Note(const std::vector<domain::EventPtr>& events) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds speed and remaining time to a run that is being trained.
  void Complete(v1::Run& run) const ABSL_LOCKS_EXCLUDED(mutex_);
  // 0 while unknown.
  double StepsPerSecond(const std::string& run) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<std::string, v1::Progress> progress_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_PROGRESS_BOARD_H_
