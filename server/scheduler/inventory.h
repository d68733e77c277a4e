// The devices of this machine.
#ifndef NORMLAB_SERVER_SCHEDULER_INVENTORY_H_
#define NORMLAB_SERVER_SCHEDULER_INVENTORY_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "server/scheduler/device.h"

namespace normlab::scheduler {

// Cores this process may use: those of its affinity mask, and no more than the CPU quota of its
// control group (cpu.max along the path in /proc/self/cgroup) allows. At least 1.
int64_t UsableCores();

// The quota part alone, for tests: cores that `root`/`group` and its parents allow, or 0 if there
// is no limit. `root` is where the control groups are mounted.
double QuotaCores(const std::filesystem::path& root, const std::filesystem::path& group);

// Memory this process may use, in bytes: the machine's, or less if the control group says so.
int64_t UsableMemory();

// One CPU slot a usable core, or `cpu_slots` when that is above 0 (more than cores: they are
// shared). GPUs come to the board by GpuWatch.
std::vector<Device> CpuSlots(int64_t cpu_slots);

}  // namespace normlab::scheduler

#endif  // NORMLAB_SERVER_SCHEDULER_INVENTORY_H_
