// Parts of a run's curve.
#ifndef NORMLAB_SERVER_STORAGE_SEGMENTS_H_
#define NORMLAB_SERVER_STORAGE_SEGMENTS_H_

#include <cstdint>
#include <limits>

namespace normlab::storage {

struct StepRange {
  int64_t first = 0;
  int64_t last = std::numeric_limits<int64_t>::max();
};

// Steps `first` to `last` of one attempt.
struct Segment {
  int64_t attempt = 0;  // its id
  int32_t number = 0;
  int64_t first = 0, last = 0;
};

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_SEGMENTS_H_
