// Which devices there are and which run holds which, as the dispatcher and everybody who asks see
// it. A lease is held until it is released, whatever becomes of the device. Thread-safe.
#ifndef NORMLAB_SERVER_SCHEDULER_DEVICE_BOARD_H_
#define NORMLAB_SERVER_SCHEDULER_DEVICE_BOARD_H_

#include <string>
#include <utility>
#include <vector>

#include "server/base/mutex.h"
#include "server/scheduler/device.h"

namespace normlab::scheduler {

class DeviceBoard {
 public:
  explicit DeviceBoard(std::vector<Device> devices) : devices_(std::move(devices)) {}

  std::vector<Device> Devices() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Ids that no device has are left out: a machine may have lost one since.
  void Take(const Lease& lease, const std::vector<std::string>& ids) ABSL_LOCKS_EXCLUDED(mutex_);
  void Release(const std::string& run) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  std::vector<Device> devices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace normlab::scheduler

#endif  // NORMLAB_SERVER_SCHEDULER_DEVICE_BOARD_H_
