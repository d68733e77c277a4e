// A sweep watched to its end: progress, then its table, the curves, and a picture.
#ifndef NORMLAB_CLIENT_SWEEP_SESSION_H_
#define NORMLAB_CLIENT_SWEEP_SESSION_H_

#include <string>

#include "client/context.h"
#include "normlab/v1/experiment_service.pb.h"

namespace normlab::client {

// Watches the experiment's runs and reports into the folder `out`, which is there. Gives the exit
// code: runs that diverged or were stopped early are results, not faults. Ctrl-C ends the watching
// and leaves the runs.
int WatchSweep(Context& context, const normlab::v1::Experiment& experiment, const std::string& out);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_SWEEP_SESSION_H_
