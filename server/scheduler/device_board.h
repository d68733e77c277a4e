// Which devices there are and which run holds which, as the dispatcher and everybody who asks see
// it. A lease is held until it is released, whatever becomes of the device; a GPU's then returns
// once the driver shows that the run's processes are gone from it and their memory is back. One
// that does not come back in kReturnTime is lost to nobody: the GPU is quarantined, with the
// reason, until the memory is back after all or somebody says that it is fine. Thread-safe.
#ifndef NORMLAB_SERVER_SCHEDULER_DEVICE_BOARD_H_
#define NORMLAB_SERVER_SCHEDULER_DEVICE_BOARD_H_

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/base/mutex.h"
#include "server/scheduler/device.h"
#include "server/scheduler/gpu.h"

namespace normlab::scheduler {

class DeviceBoard {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // The run whose attempt a process belongs to; empty for a process that is none of ours.
  using OwnerOf = std::function<std::string(pid_t)>;

  static constexpr std::chrono::seconds kReturnTime{10};

  // `no_gpus` says why trainers here can use no GPU; empty if they can.
  explicit DeviceBoard(std::vector<Device> devices, std::string no_gpus = "")
      : devices_(std::move(devices)), no_gpus_(std::move(no_gpus)) {}

  std::vector<Device> Devices() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Ids that no device has are left out: a machine may have lost one since.
  void Take(const Lease& lease, const std::vector<std::string>& ids) ABSL_LOCKS_EXCLUDED(mutex_);
  void Release(const std::string& run) ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes in what the driver says of all GPUs. True when a run may be able to start that was not
  // before: a lease has returned, a GPU can be used again, there is more room.
  bool Update(const std::vector<GpuReading>& gpus, const OwnerOf& owner_of, Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Gives a device, also one that is not there yet, no more runs, for this reason; an empty one
  // puts it back, also out of quarantine.
  void Drain(const std::string& id, const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Why a device takes no runs, apart.
  struct Reasons {
    std::string fault, drained, quarantine, outsiders;
    // Memory that no process accounts for, at its least: what the driver itself needs.
    std::optional<int64_t> idle_bytes = {};
    std::map<std::string, Time> returning_since = {};  // by run
  };

  bool UpdateOne(Device& device, const GpuReading& gpu, const OwnerOf& owner_of, Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ReturnLeases(Device& device, Reasons& reasons, const GpuReading& gpu,
                    const OwnerOf& owner_of, Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Device& DeviceOf(const GpuReading& gpu) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Explain(Device& device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::vector<Device> devices_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Reasons> reasons_ ABSL_GUARDED_BY(mutex_);  // by device
  const std::string no_gpus_;
};

}  // namespace normlab::scheduler

#endif  // NORMLAB_SERVER_SCHEDULER_DEVICE_BOARD_H_
