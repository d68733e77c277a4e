// What is known about the runs being watched: built from the events of a watch, read by views.
//
// Curves follow lineage: when an attempt goes on from a checkpoint, what its predecessor wrote
// beyond that checkpoint leaves the curve. Points seen twice (a watch that had to start over) are
// dropped, because steps of an attempt only rise. One thread.
#ifndef NORMLAB_CLIENT_WATCH_MODEL_H_
#define NORMLAB_CLIENT_WATCH_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "normlab/v1/run.pb.h"
#include "normlab/v1/run_service.pb.h"
#include "server/export/curve.h"

namespace normlab::client {

struct WatchedRun {
  normlab::v1::Run run;
  std::string colour;
  exporter::Series loss{"loss", {}, {}};
  exporter::Series gradient_norm{"gradient_norm", {}, {}};
  int32_t attempt = 0;  // the attempt that writes the curve
  bool ended = false;   // its curve is complete

  int64_t Step() const;   // the last step that is known
  int64_t Steps() const;  // steps in the whole run, 0 when unknown
};

class WatchModel {
 public:
  // Runs in the order in which they are shown; those without a colour take one of the palette.
  explicit WatchModel(const std::vector<normlab::v1::Run>& runs);

  void Apply(const normlab::v1::WatchRunsResponse& event);

  const std::vector<WatchedRun>& runs() const { return runs_; }
  bool AllEnded() const;

 private:
  WatchedRun& Find(const std::string& id);
  void StartAttempt(WatchedRun& run, int32_t attempt);
  void AddPoints(const normlab::v1::Points& points);

  std::vector<WatchedRun> runs_;
};

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_WATCH_MODEL_H_
