// Which run starts where, as a pure function of what is known.
#ifndef NORMLAB_SERVER_SCHEDULER_PLAN_H_
#define NORMLAB_SERVER_SCHEDULER_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/scheduler/device.h"
#include "server/scheduler/snapshot.h"

namespace normlab::scheduler {

struct Placement {
  std::string run;
  std::string name;
  std::vector<std::string> devices;  // ids to lease: CPU slots, one for each thread, or GPUs
  Lease lease = {};                  // what is to be noted on each
  int64_t threads = 1;               // that it trains with
};

// A running run that is to be paused, so that another one can start.
struct Preemption {
  std::string run;
  std::string for_run;  // id
  std::string for_name;
};

struct Plan {
  std::vector<Placement> start;  // in this order
  std::vector<Preemption> preempt;
};

// Who starts now, and who is paused for whom (allocation.h has the rules).
Plan MakePlan(const Snapshot& snapshot);

// False when no plan could start or pause anything, whoever waits: every device is taken, for good.
bool MayStartAny(const std::vector<Device>& devices);

// Why a run that asks for `device` and `threads` cannot run on these devices, also when nobody else
// is there; empty if it can.
std::string WhyNever(const std::string& device, int64_t threads,
                     const std::vector<Device>& devices);
// The same for all that it asks for.
std::string WhyNever(const QueuedRun& run, const std::vector<Device>& devices);

// The devices as they are when what keeps them from taking runs for a time is over.
std::vector<Device> OnceAllIsWell(std::vector<Device> devices);

// "cpu:0,cpu:1", as an attempt's device, and back.
std::string JoinDevices(const std::vector<std::string>& ids);
std::vector<std::string> SplitDevices(const std::string& joined);

}  // namespace normlab::scheduler

#endif  // NORMLAB_SERVER_SCHEDULER_PLAN_H_
