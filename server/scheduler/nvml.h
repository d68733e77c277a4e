// NVIDIA's management library, opened at run time: normlabd links no GPU library and makes no
// context on a GPU.
#ifndef NORMLAB_SERVER_SCHEDULER_NVML_H_
#define NORMLAB_SERVER_SCHEDULER_NVML_H_

#include <vector>

#include "server/scheduler/device.h"

namespace normlab::scheduler {

// The GPUs that libnvidia-ml.so.1 names, in its order (PCI bus order): id gpu:N, name, UUID,
// memory. Empty where there is no such library or it finds no driver.
std::vector<Device> FindGpus();

}  // namespace normlab::scheduler

#endif  // NORMLAB_SERVER_SCHEDULER_NVML_H_
