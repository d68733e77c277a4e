// NVIDIA's management library, opened at run time: normlabd links no GPU library and makes no
// context on a GPU.
#ifndef NORMLAB_SERVER_SCHEDULER_NVML_H_
#define NORMLAB_SERVER_SCHEDULER_NVML_H_

#include <memory>
#include <string>

#include "server/scheduler/gpu.h"

namespace normlab::scheduler {

// Null where there is no such library or it finds no driver, which is normal.
std::unique_ptr<GpuSource> OpenNvml(const std::string& library = "libnvidia-ml.so.1");

}  // namespace normlab::scheduler

#endif  // NORMLAB_SERVER_SCHEDULER_NVML_H_
