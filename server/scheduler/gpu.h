// What the driver says about the GPUs of this machine.
#ifndef NORMLAB_SERVER_SCHEDULER_GPU_H_
#define NORMLAB_SERVER_SCHEDULER_GPU_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace normlab::scheduler {

// A process that has a context on a GPU.
struct GpuProcess {
  pid_t pid = 0;
  std::optional<int64_t> memory_bytes = {};  // absent where the driver does not say
};

// One GPU, or one instance of a GPU that is divided (MIG).
struct GpuReading {
  std::string id;  // gpu:0 in the driver's order (PCI bus), gpu:0:1 for an instance
  std::string name;
  std::string uuid;
  int64_t memory_bytes = 0;
  int64_t used_bytes = 0;                  // by whomever
  std::optional<double> utilization = {};  // 0 to 1, over the driver's last sample
  std::vector<GpuProcess> processes = {};
  std::string fault = {};  // why nothing can run on it; the rest may be missing then
};

// Reads them all. One thread at a time.
class GpuSource {
 public:
  virtual ~GpuSource() = default;
  virtual std::vector<GpuReading> Read() = 0;
};

}  // namespace normlab::scheduler

#endif  // NORMLAB_SERVER_SCHEDULER_GPU_H_
