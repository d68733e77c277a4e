// Watching runs to their end: the live picture on a terminal, plain lines elsewhere, JSON lines
// with --json.
#ifndef NORMLAB_CLIENT_WATCH_SESSION_H_
#define NORMLAB_CLIENT_WATCH_SESSION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/context.h"
#include "client/watch_model.h"
#include "normlab/v1/run_service.pb.h"

namespace normlab::client {

struct WatchTask {
  std::string title;
  normlab::v1::WatchRunsRequest request;
  std::vector<normlab::v1::Run> runs;  // in the order in which they are shown
  std::string again;                   // the command that watches them again
};

struct WatchOutcome {
  bool interrupted = false;
  std::vector<WatchedRun> runs;

  // Of the runs' ends: 1 when one failed, was cancelled or timed out, else 5 when one diverged.
  int exit_code() const;
};

// To watch these runs.
WatchTask TaskOfRuns(std::vector<normlab::v1::Run> runs);

// Returns when every run has ended (a paused one has not) or the user pressed Ctrl-C (which is said,
// with the command to go on). The error of a watch that cannot go on otherwise.
absl::StatusOr<WatchOutcome> Watch(Context& context, const WatchTask& task);

int ExitCodeOfState(normlab::v1::Run::State state);

// One event as a line of JSON; empty for events that say nothing (heartbeats).
//
//   {"event":"points","run":"01J…","attempt":1,"columns":{"loss":{"steps":[7],"values":[4.1]}}}
std::string EventJson(const normlab::v1::WatchRunsResponse& event);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_WATCH_SESSION_H_
