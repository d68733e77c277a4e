// The picture of a watch: a line a run (state, progress, loss, gradient norm, time left) and the
// curves below, as large as the terminal allows.
#ifndef NORMLAB_CLIENT_TERM_LIVE_VIEW_H_
#define NORMLAB_CLIENT_TERM_LIVE_VIEW_H_

#include <string>
#include <vector>

#include "client/term/style.h"
#include "client/term/terminal.h"
#include "client/watch_model.h"

namespace normlab::client {

struct LiveFrameInput {
  std::string title;
  std::string notice;  // shown instead of the elapsed time: the server is away
  std::string progress;  // of all runs together, shown before the elapsed time where there is room
  double elapsed_seconds = 0;
};

// Lines that fit `size`, one row left free for the cursor.
std::vector<std::string> LiveFrame(const WatchModel& model, const LiveFrameInput& input,
                                   const Terminal::Size& size, const Style& style);

// Estimated time to the end of the run, or a negative number when unknown.
double RemainingSeconds(const WatchedRun& run);

// What a run waits for, or why it ended; empty while there is nothing to say.
std::string RunRemark(const normlab::v1::Run& run);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_TERM_LIVE_VIEW_H_
