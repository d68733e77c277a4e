// How far all runs of a watch have come together, and how long the rest will take.
#ifndef NORMLAB_CLIENT_OVERALL_PROGRESS_H_
#define NORMLAB_CLIENT_OVERALL_PROGRESS_H_

#include <cstddef>
#include <string>

#include "client/watch_model.h"

namespace normlab::client {

struct OverallProgress {
  size_t runs = 0;
  size_t ended = 0;
  size_t active = 0;    // starting, running, pausing or cancelling
  double fraction = 0;  // of the arithmetic, a process's start counted in; 0 to 1
};

OverallProgress ProgressOf(const WatchModel& model);

// "12 of 48 runs ended, 2 running"; with an estimate ", 1 min 5 s left" when `remaining` is not
// negative.
std::string ProgressText(const OverallProgress& progress, double remaining_seconds);

// Time left at the pace since `start`, when the progress was `start_fraction`; negative when there
// is none yet.
double RemainingSeconds(const OverallProgress& progress, double start_fraction,
                        double elapsed_seconds);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_OVERALL_PROGRESS_H_
