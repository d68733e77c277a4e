// Which run starts where, as a pure function of what is known.
#ifndef NORMLAB_SERVER_SCHEDULER_PLAN_H_
#define NORMLAB_SERVER_SCHEDULER_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/scheduler/device.h"

namespace normlab::scheduler {

struct QueuedRun {
  std::string id;
  std::string name;
  std::string device;  // auto, cpu, gpu or a device id
  int64_t threads = 1;
};

struct Placement {
  std::string run;
  std::string name;
  std::vector<std::string> devices;  // ids to lease, one for each thread
};

struct Waiting {
  std::string run;
  std::string reason;
};

struct Plan {
  std::vector<Placement> start;
  std::vector<Waiting> wait;
};

// Places `queue`, in order, on the free devices. A run that does not fit holds back the runs
// behind it that want the same kind of device, so that no wide run waits for ever.
Plan MakePlan(const std::vector<QueuedRun>& queue, const std::vector<Device>& devices);

// Why a run that asks for `device` and `threads` can never run on these devices; empty if it can.
std::string WhyNever(const std::string& device, int64_t threads,
                     const std::vector<Device>& devices);

// "cpu:0,cpu:1", as an attempt's device, and back.
std::string JoinDevices(const std::vector<std::string>& ids);
std::vector<std::string> SplitDevices(const std::string& joined);

}  // namespace normlab::scheduler

#endif  // NORMLAB_SERVER_SCHEDULER_PLAN_H_
