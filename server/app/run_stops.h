// Why the server stopped a run, in words.
#ifndef NORMLAB_SERVER_APP_RUN_STOPS_H_
#define NORMLAB_SERVER_APP_RUN_STOPS_H_

#include <string>

#include "server/storage/run_control.h"
#include "server/storage/sqlite.h"

namespace normlab::app {

// Name of the run that a preempted one makes room for, or its id once it is deleted; empty for
// another cause.
std::string MakesRoomFor(storage::Database& database, const storage::RunControl& control);

// "paused for NAME; " before the reason why a run waits that the server took from its devices;
// empty for any other.
std::string WhyItWasStopped(storage::StopCause cause, const std::string& makes_room_for);
// The same of a run that is stored.
std::string WhyItWasStopped(storage::Database& database, const std::string& run);

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_RUN_STOPS_H_
