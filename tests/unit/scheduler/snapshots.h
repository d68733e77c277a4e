// Short ways to say what a machine and its queue are like.
#ifndef NORMLAB_TESTS_UNIT_SCHEDULER_SNAPSHOTS_H_
#define NORMLAB_TESTS_UNIT_SCHEDULER_SNAPSHOTS_H_

#include <string>
#include <utility>
#include <vector>

#include "server/base/strings.h"
#include "server/scheduler/plan.h"
#include "server/scheduler/snapshot.h"

namespace normlab::scheduler {

inline constexpr int64_t kGiB = int64_t{1} << 30;

inline void AddSlots(Snapshot& snapshot, int count) {
  for (int i = 0; i < count; ++i) {
    Device device;
    device.id = StrCat("cpu:", i);
    snapshot.devices.push_back(std::move(device));
  }
}
inline void AddGpus(Snapshot& snapshot, int count, int64_t memory = 80 * kGiB) {
  for (int i = 0; i < count; ++i) {
    Device device;
    device.id = StrCat("gpu:", i);
    device.kind = DeviceKind::kGpu;
    device.memory_bytes = memory;
    snapshot.devices.push_back(std::move(device));
  }
}

// Puts a run on devices, without asking whether it fits.
inline void Hold(Snapshot& snapshot, const Lease& lease, const std::vector<std::string>& devices,
                 Holding holding = {}) {
  for (Device& device : snapshot.devices) {
    for (const std::string& id : devices) {
      if (device.id == id) device.leases.push_back(lease);
    }
  }
  snapshot.holdings[lease.run] = holding;
}

inline std::vector<std::string> Started(const Plan& plan) {
  std::vector<std::string> started;
  for (const Placement& placement : plan.start) {
    started.push_back(placement.run + "@" + JoinDevices(placement.devices));
  }
  return started;
}

inline std::vector<std::string> Preempted(const Plan& plan) {
  std::vector<std::string> runs;
  for (const Preemption& one : plan.preempt) runs.push_back(one.run + " for " + one.for_run);
  return runs;
}

}  // namespace normlab::scheduler

#endif  // NORMLAB_TESTS_UNIT_SCHEDULER_SNAPSHOTS_H_
