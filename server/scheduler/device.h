// Devices of the machine and who holds them.
#ifndef NORMLAB_SERVER_SCHEDULER_DEVICE_H_
#define NORMLAB_SERVER_SCHEDULER_DEVICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace normlab::scheduler {

enum class DeviceKind { kCpu, kGpu };

// A run's hold on a device.
struct Lease {
  std::string run = {};
  std::string name = {};  // what people call the run
  std::string user = {};
  int priority = 0;          // domain/priority.h
  bool preemptible = false;  // may be paused for a run of a higher priority
  bool exclusive = false;    // nobody else on the device
  int64_t memory_bytes = 0;  // of a GPU: its budget, never more
  bool returning = false;    // the run has ended, and the GPU's memory is not seen to be free yet
};

// A place where runs can train. A CPU slot is one core's worth of one thread; a run of t threads
// holds t slots, each alone. Several runs may share a GPU, within its memory.
struct Device {
  std::string id = {};  // cpu:0, gpu:0, or gpu:0:1 for an instance of a divided GPU (MIG)
  DeviceKind kind = DeviceKind::kCpu;
  std::string name = {};  // for people
  std::string uuid = {};  // of a GPU or an instance, as CUDA_VISIBLE_DEVICES takes it
  int64_t memory_bytes = 0;
  int64_t used_bytes = 0;                  // of the memory, by whomever
  int64_t foreign_bytes = 0;               // of these, by processes that no run here started
  std::optional<double> utilization = {};  // 0 to 1
  std::string unavailable_reason = {};     // takes no runs, for this reason
  bool unavailable_for_good = false;       // and that does not change while this server runs
  std::vector<Lease> leases = {};
};

}  // namespace normlab::scheduler

#endif  // NORMLAB_SERVER_SCHEDULER_DEVICE_H_
