// What every queued run waits for, and when it is expected to start: the rules of allocation.h
// played forward, with runs ending when they are expected to.
#ifndef NORMLAB_SERVER_SCHEDULER_FORECAST_H_
#define NORMLAB_SERVER_SCHEDULER_FORECAST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/scheduler/snapshot.h"

namespace normlab::scheduler {

struct Waiting {
  enum class Cause {
    kHeld,      // it waits to be released
    kRun,       // another run must have ended
    kTime,      // it is not tried again yet
    kLimit,     // its user uses as much as they may
    kNoDevice,  // nothing here suits it at present
    kDevice,    // the device is another run's
    kTurn,      // others go first
    kNext,      // it starts as soon as somebody looks
  };
  std::string run;
  Cause cause = Cause::kTurn;
  int64_t position = 0;                      // from 1; 0: held, or waits for a run
  std::optional<double> start_seconds = {};  // from now; absent when that cannot be told
  std::string reason = {};                   // for people, without when
};

// In the order in which they are expected to start; those that are held or wait for a run last.
// A run whose start depends on the end of one with no expected end has no start_seconds: for the
// order, such ends are taken to come after all others.
// Ends after so many `starts`; the runs behind them are then left out, but not those last ones.
std::vector<Waiting> MakeForecast(const Snapshot& snapshot, size_t starts = SIZE_MAX);

// "about 4 min"; "any moment" for less than a second.
std::string AboutText(double seconds);

// The reason and, where it says something, when: "waits for run X on cpu:0, about 4 min".
std::string ReasonWithTime(const Waiting& waiting);

}  // namespace normlab::scheduler

#endif  // NORMLAB_SERVER_SCHEDULER_FORECAST_H_
