// A run's numbers, taken anew from its points.
#ifndef NORMLAB_SERVER_STORAGE_SUMMARY_H_
#define NORMLAB_SERVER_STORAGE_SUMMARY_H_

#include <vector>

#include "absl/status/status.h"
#include "server/storage/attempts.h"
#include "server/storage/writer.h"

namespace normlab::storage {

// Takes back what a run's row says beyond the step that its latest attempt goes on from: progress
// and summary become those of the steps kept. What was known before training stays. Publishes
// nothing. Cheap when nothing was abandoned; else it looks at each point kept of three series.
absl::Status RewindRun(WriteContext& context, const std::vector<AttemptRow>& attempts);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_SUMMARY_H_
