// Several events of new points as one.
//
// Who watches a fast run, or has fallen a little behind, gets one message instead of many: on the
// wire a message costs more than the points in it.
#ifndef NORMLAB_SERVER_STREAM_MERGE_H_
#define NORMLAB_SERVER_STREAM_MERGE_H_

#include <cstddef>
#include <deque>
#include <vector>

#include "server/base/mutex.h"
#include "server/domain/event.h"

namespace normlab::stream {

// Puts events that stand side by side and have points of the same attempt into one, which has the
// sequence of the last of them. Watchers that stand at the same place share it, as they share any
// event. Any thread.
class Merger {
 public:
  // No merged event has more points than this, unless one event had.
  static constexpr int64_t kMostPoints = 4096;

  std::vector<domain::EventPtr> Merge(std::vector<domain::EventPtr> events)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Made {
    domain::EventPtr first, last;
    domain::EventPtr merged;
  };
  domain::EventPtr MergeRange(const domain::EventPtr* events, size_t count)
      ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  std::deque<Made> made_ ABSL_GUARDED_BY(mutex_);  // the latest
};

}  // namespace normlab::stream

#endif  // NORMLAB_SERVER_STREAM_MERGE_H_
