// Which devices there are and which run holds which, as the dispatcher and everybody who asks see
// it. A lease is held until it is released, whatever becomes of the device; a GPU's then returns
// once the driver shows that the run's processes are gone from it and their memory is back. One
// that does not come back in kReturnTime is lost to nobody: the GPU is quarantined, with the
// reason, until the memory is back after all or somebody says that it is fine. Thread-safe.
#ifndef NORMLAB_SERVER_SCHEDULER_DEVICE_BOARD_H_
#define NORMLAB_SERVER_SCHEDULER_DEVICE_BOARD_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/base/mutex.h"
#include "server/scheduler/device.h"
#include "server/scheduler/gpu.h"

namespace normlab::scheduler {

// What trainers here can do with GPUs.
struct GpuUse {
  std::string refusal = {};  // why they can use none; empty if they can
  int64_t of_a_run = std::numeric_limits<int64_t>::max();  // so many at most train one run
};

class DeviceBoard {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // The run whose attempt a process belongs to; empty for a process that is none of ours.
  using OwnerOf = std::function<std::string(pid_t)>;

  static constexpr std::chrono::seconds kReturnTime{10};
  // A GPU that does not answer for so long is lost to the runs on it.
  static constexpr std::chrono::seconds kLostTime{5};

  explicit DeviceBoard(std::vector<Device> devices, GpuUse gpu_use = {})
      : devices_(std::move(devices)), gpu_use_(std::move(gpu_use)) {}

  int64_t gpus_of_a_run() const { return gpu_use_.of_a_run; }

  std::vector<Device> Devices() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Ids that no device has are left out: a machine may have lost one since.
  void Take(const Lease& lease, const std::vector<std::string>& ids) ABSL_LOCKS_EXCLUDED(mutex_);
  void Release(const std::string& run) ABSL_LOCKS_EXCLUDED(mutex_);

  // A run that is not to go on, and why, in words for people.
  struct Trouble {
    enum class Kind { kOverBudget, kLostGpu };
    Kind kind;
    std::string run;
    std::string reason;
  };
  struct Changes {
    // A run may be able to start that was not before: a lease has returned, a GPU can be used
    // again, there is more room.
    bool more_room = false;
    std::vector<Trouble> troubles = {};  // the same at every look, while they last
  };
  // Takes in what the driver says of all GPUs.
  Changes Update(const std::vector<GpuReading>& gpus, const OwnerOf& owner_of, Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // What the driver says is wrong with the first of these GPUs that does not answer: "gpu:2 was
  // lost: ..."; empty when all do.
  std::string FaultOf(const std::vector<std::string>& ids) const ABSL_LOCKS_EXCLUDED(mutex_);

  // For who looks at the GPUs: returns after `timeout`, or as soon as a lease of one has begun to
  // return or Nudge() was called since the last time. True while any lease is returning.
  bool WaitForNews(std::chrono::milliseconds timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  void Nudge() ABSL_LOCKS_EXCLUDED(mutex_);

  // Gives a device, also one that is not there yet, no more runs, for this reason; an empty one
  // puts it back, also out of quarantine.
  void Drain(const std::string& id, const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Why a device takes no runs, apart.
  struct Reasons {
    std::string fault, drained, quarantine, outsiders;
    Time fault_since = {};  // while there is one
    // Memory that no process accounts for, at its least: what the driver itself needs.
    std::optional<int64_t> idle_bytes = {};
    std::map<std::string, Time> returning_since = {};  // by run
    // Runs of the processes there. One that has ended has no owner to be asked for any more, and
    // the driver may show it for a while.
    std::map<pid_t, std::string> owners = {};
  };

  void UpdateOne(Device& device, const GpuReading& gpu, const OwnerOf& owner_of, Time now,
                 Changes& changes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void FindOwners(Reasons& reasons, const GpuReading& gpu, const OwnerOf& owner_of);
  static void FindTroubles(const Device& device, const Reasons& reasons, const GpuReading& gpu,
                           Time now, std::vector<Trouble>& troubles);
  static bool ReturnLeases(Device& device, Reasons& reasons, const GpuReading& gpu, Time now);
  Device& DeviceOf(const GpuReading& gpu) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Explain(Device& device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  CondVar news_come_;
  bool news_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Device> devices_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Reasons> reasons_ ABSL_GUARDED_BY(mutex_);  // by device
  const GpuUse gpu_use_;
};

}  // namespace normlab::scheduler

#endif  // NORMLAB_SERVER_SCHEDULER_DEVICE_BOARD_H_
