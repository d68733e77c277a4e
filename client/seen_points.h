// Which points of a watch were seen, so that those which come again after a reconnection are left
// out: a history that was cut off in the middle has no resume token, and starts again.
#ifndef NORMLAB_CLIENT_SEEN_POINTS_H_
#define NORMLAB_CLIENT_SEEN_POINTS_H_

#include <cstdint>
#include <map>
#include <string>

#include "normlab/v1/run_service.pb.h"

namespace normlab::client {

class SeenPoints {
 public:
  // Takes out of `event` what was seen before and notes the rest. False when nothing is left of it.
  // Points of a run come in order of attempt and step, each step whole; other events always pass.
  bool Keep(normlab::v1::WatchRunsResponse& event);

 private:
  struct Position {
    int32_t attempt = 0;
    int64_t step = 0;
  };
  std::map<std::string, Position> seen_;  // by run
};

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_SEEN_POINTS_H_
