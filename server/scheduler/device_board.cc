#include "server/scheduler/device_board.h"

#include <algorithm>

namespace normlab::scheduler {

std::vector<Device> DeviceBoard::Devices() const {
  MutexLock lock(mutex_);
  return devices_;
}

void DeviceBoard::Take(const Lease& lease, const std::vector<std::string>& ids) {
  MutexLock lock(mutex_);
  for (Device& device : devices_) {
    if (std::ranges::find(ids, device.id) != ids.end()) device.leases.push_back(lease);
  }
}

void DeviceBoard::Release(const std::string& run) {
  MutexLock lock(mutex_);
  for (Device& device : devices_) {
    std::erase_if(device.leases, [&run](const Lease& lease) { return lease.run == run; });
  }
}

}  // namespace normlab::scheduler
