// Which run starts where, as a pure function of what is known.
#ifndef NORMLAB_SERVER_SCHEDULER_PLAN_H_
#define NORMLAB_SERVER_SCHEDULER_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

namespace normlab::scheduler {

enum class DeviceKind { kCpu, kGpu };

// A place where a run can train. A CPU slot is one core's worth of one thread; a run of t threads
// holds t slots.
struct Device {
  std::string id;    // cpu:0, gpu:0
  DeviceKind kind = DeviceKind::kCpu;
  std::string name;  // for people
  std::string uuid;  // of a GPU
  int64_t memory_bytes = 0;
  std::string unavailable_reason;  // takes no runs, for this reason
  std::string holder;              // run that holds it, or empty
  std::string holder_name;         // what people call that run
};

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
