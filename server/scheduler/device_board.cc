#include "server/scheduler/device_board.h"

#include <algorithm>

#include "server/base/log.h"
#include "server/base/strings.h"

namespace normlab::scheduler {
namespace {

// The driver's own bookkeeping comes and goes; a context of a process is larger.
constexpr int64_t kSlackBytes = int64_t{256} << 20;
// A GPU is left alone once others use so much of it, and used again below that.
constexpr double kFilledByOthers = 0.9;
// Memory in use without a process to be seen (the server may be in a container): less is the
// driver's.
constexpr double kDriversShare = 0.05;

std::string MiB(int64_t bytes) { return StrCat((bytes + (1 << 20) - 1) >> 20, " MiB"); }
std::string GiB(int64_t bytes) { return StrCat((bytes + (int64_t{1} << 29)) >> 30, " GiB"); }

int64_t MemoryOf(const std::vector<GpuProcess>& processes) {
  int64_t bytes = 0;
  for (const GpuProcess& process : processes) bytes += process.memory_bytes.value_or(0);
  return bytes;
}

using Owners = std::map<pid_t, std::string>;

int64_t MemoryOfRun(const std::string& run, const std::vector<GpuProcess>& processes,
                    const Owners& owners) {
  int64_t bytes = 0;
  for (const GpuProcess& process : processes) {
    if (owners.at(process.pid) == run) bytes += process.memory_bytes.value_or(0);
  }
  return bytes;
}

bool IsLent(const Device& device, const std::string& run) {
  return std::ranges::find(device.leases, run, &Lease::run) != device.leases.end();
}

std::string LostText(const std::string& id, const std::string& fault) {
  return StrCat(id, " was lost: ", fault);
}

// Of the memory in use, what processes hold that are none of ours.
int64_t ForeignBytes(const Device& device, const GpuReading& gpu,
                     const std::vector<GpuProcess>& foreign) {
  int64_t bytes = MemoryOf(foreign);
  const bool said = std::ranges::all_of(
      foreign, [](const GpuProcess& process) { return process.memory_bytes.has_value(); });
  if (!said) {
    int64_t ours = 0;
    for (const Lease& lease : device.leases) ours += lease.memory_bytes;
    bytes = std::max(bytes, gpu.used_bytes - ours);
  }
  const bool unseen =
      gpu.processes.empty() && device.leases.empty() &&
      static_cast<double>(gpu.used_bytes) > kDriversShare * static_cast<double>(gpu.memory_bytes);
  return unseen ? gpu.used_bytes : bytes;
}

std::string FilledText(int64_t bytes, const GpuReading& gpu,
                       const std::vector<GpuProcess>& foreign) {
  if (static_cast<double>(bytes) < kFilledByOthers * static_cast<double>(gpu.memory_bytes))
    return "";
  std::string pids;
  for (size_t i = 0; i < foreign.size() && i < 3; ++i) {
    StrAppend(&pids, i == 0 ? " (process " : ", ", foreign[i].pid);
  }
  if (foreign.size() > 3) pids += ", ...";
  return StrCat("others", pids.empty() ? "" : StrCat(pids, ")"), " use ", GiB(bytes), " of its ",
                GiB(gpu.memory_bytes), "; it is used again when they have ended");
}

}  // namespace

std::vector<Device> DeviceBoard::Devices() const {
  MutexLock lock(mutex_);
  return devices_;
}

void DeviceBoard::Take(const Lease& lease, const std::vector<std::string>& ids) {
  MutexLock lock(mutex_);
  for (Device& device : devices_) {
    if (std::ranges::find(ids, device.id) == ids.end()) continue;
    device.leases.push_back(lease);
    // Some of what was others' may be this run's, which an earlier server started.
    if (device.foreign_bytes > 0) news_ = true;
  }
  if (news_) news_come_.NotifyAll();
}

void DeviceBoard::Release(const std::string& run) {
  MutexLock lock(mutex_);
  for (Device& device : devices_) {
    if (device.kind == DeviceKind::kCpu) {
      std::erase_if(device.leases, [&run](const Lease& lease) { return lease.run == run; });
      continue;
    }
    for (Lease& lease : device.leases) {
      if (lease.run == run) lease.returning = news_ = true;
    }
  }
  if (news_) news_come_.NotifyAll();
}

void DeviceBoard::Nudge() {
  MutexLock lock(mutex_);
  news_ = true;
  news_come_.NotifyAll();
}

bool DeviceBoard::WaitForNews(std::chrono::milliseconds timeout) {
  MutexLock lock(mutex_);
  while (!news_ && news_come_.WaitFor(mutex_, timeout)) {
  }
  news_ = false;
  return std::ranges::any_of(devices_, [](const Device& device) {
    return std::ranges::any_of(device.leases, &Lease::returning);
  });
}

void DeviceBoard::Drain(const std::string& id, const std::string& reason) {
  MutexLock lock(mutex_);
  Reasons& reasons = reasons_[id];
  reasons.drained = reason;
  if (reason.empty()) {
    reasons.quarantine.clear();
    reasons.idle_bytes.reset();  // what is in use now is how it is
  }
  for (Device& device : devices_) {
    if (device.id == id) Explain(device);
  }
}

DeviceBoard::Changes DeviceBoard::Update(const std::vector<GpuReading>& gpus,
                                         const OwnerOf& owner_of, Time now) {
  MutexLock lock(mutex_);
  Changes changes;
  for (const GpuReading& gpu : gpus) UpdateOne(DeviceOf(gpu), gpu, owner_of, now, changes);
  for (Device& device : devices_) {
    if (device.kind == DeviceKind::kCpu) continue;
    if (std::ranges::find(gpus, device.id, &GpuReading::id) != gpus.end()) continue;
    UpdateOne(device,
              {.id = device.id,
               .name = device.name,
               .uuid = device.uuid,
               .fault = "the driver no longer names it"},
              owner_of, now, changes);
  }
  return changes;
}

std::string DeviceBoard::FaultOf(const std::vector<std::string>& ids) const {
  MutexLock lock(mutex_);
  for (const std::string& id : ids) {
    const auto found = reasons_.find(id);
    if (found == reasons_.end() || found->second.fault.empty()) continue;
    return LostText(id, found->second.fault);
  }
  return "";
}

Device& DeviceBoard::DeviceOf(const GpuReading& gpu) {
  const auto found = std::ranges::find(devices_, gpu.id, &Device::id);
  if (found != devices_.end()) return *found;
  devices_.push_back(
      {.id = gpu.id, .kind = DeviceKind::kGpu, .unavailable_reason = "it was not looked at yet"});
  return devices_.back();
}

void DeviceBoard::UpdateOne(Device& device, const GpuReading& gpu, const OwnerOf& owner_of,
                            Time now, Changes& changes) {
  Reasons& reasons = reasons_[device.id];
  const bool could = device.unavailable_reason.empty();
  const int64_t foreign_before = device.foreign_bytes;
  device.name = gpu.name;
  device.uuid = gpu.uuid;
  if (gpu.memory_bytes > 0) device.memory_bytes = gpu.memory_bytes;
  device.used_bytes = gpu.used_bytes;
  device.utilization = gpu.utilization;
  if (gpu.fault != reasons.fault && !gpu.fault.empty()) {
    LogWarning("a GPU cannot be used", {{"device", device.id}, {"why", gpu.fault}});
  }
  if (reasons.fault.empty()) reasons.fault_since = now;
  reasons.fault = gpu.fault;
  FindOwners(reasons, gpu, owner_of);
  std::vector<GpuProcess> foreign;
  for (const GpuProcess& process : gpu.processes) {
    if (!IsLent(device, reasons.owners.at(process.pid))) foreign.push_back(process);
  }
  device.foreign_bytes = ForeignBytes(device, gpu, foreign);
  reasons.outsiders = FilledText(device.foreign_bytes, gpu, foreign);
  FindTroubles(device, reasons, gpu, now, changes.troubles);
  const bool returned = ReturnLeases(device, reasons, gpu, now);
  Explain(device);
  changes.more_room |= returned || (!could && device.unavailable_reason.empty()) ||
                       device.foreign_bytes < foreign_before;
}

void DeviceBoard::FindOwners(Reasons& reasons, const GpuReading& gpu, const OwnerOf& owner_of) {
  Owners owners;
  for (const GpuProcess& process : gpu.processes) {
    std::string owner = owner_of(process.pid);
    const auto known = reasons.owners.find(process.pid);
    if (owner.empty() && known != reasons.owners.end()) owner = known->second;
    owners[process.pid] = std::move(owner);
  }
  reasons.owners = std::move(owners);
}

void DeviceBoard::FindTroubles(const Device& device, const Reasons& reasons, const GpuReading& gpu,
                               Time now, std::vector<Trouble>& troubles) {
  const bool lost = !gpu.fault.empty() && now - reasons.fault_since >= kLostTime;
  for (const Lease& lease : device.leases) {
    if (lease.returning) continue;
    if (lost) {
      troubles.push_back({Trouble::Kind::kLostGpu, lease.run, LostText(device.id, gpu.fault)});
    }
    if (lease.exclusive || lease.memory_bytes == 0) continue;
    const int64_t used = MemoryOfRun(lease.run, gpu.processes, reasons.owners);
    if (used <= lease.memory_bytes) continue;
    troubles.push_back({Trouble::Kind::kOverBudget, lease.run,
                        StrCat("it held ", MiB(used), " of ", device.id, "'s memory, and its ",
                               "budget is ", MiB(lease.memory_bytes),
                               "; give it more (--gpu-memory), ask for the GPU alone "
                               "(--exclusive), or make batch_size or the model smaller")});
  }
}

bool DeviceBoard::ReturnLeases(Device& device, Reasons& reasons, const GpuReading& gpu, Time now) {
  const int64_t unaccounted = std::max<int64_t>(0, gpu.used_bytes - MemoryOf(gpu.processes));
  const bool said =
      gpu.fault.empty() && std::ranges::all_of(gpu.processes, [](const GpuProcess& process) {
        return process.memory_bytes.has_value();
      });
  if (said) reasons.idle_bytes = std::min(reasons.idle_bytes.value_or(unaccounted), unaccounted);
  const int64_t stuck = said ? unaccounted - *reasons.idle_bytes : 0;
  const bool left = std::ranges::any_of(reasons.owners, [&device](const auto& process) {
    return !process.second.empty() && !IsLent(device, process.second);
  });
  if (gpu.fault.empty() && stuck <= kSlackBytes && !left) reasons.quarantine.clear();
  return std::erase_if(device.leases, [&](const Lease& lease) {
           if (!lease.returning) return false;
           const Time since = reasons.returning_since.try_emplace(lease.run, now).first->second;
           const bool gone = std::ranges::none_of(reasons.owners, [&lease](const auto& process) {
             return process.second == lease.run;
           });
           const bool back = gpu.fault.empty() && gone && stuck <= kSlackBytes;
           if (!back && now - since < kReturnTime) return false;
           if (!back) {
             reasons.quarantine =
                 StrCat(!gpu.fault.empty() ? std::string("it did not answer")
                        : !gone            ? std::string("a process was still there")
                                : StrCat(stuck >> 20, " MiB were still in use by no process"),
                        " after run ", lease.name,
                        " had ended; when all is well there: normlab devices "
                        "--enable ",
                        device.id);
             LogWarning("a GPU is quarantined",
                        {{"device", device.id}, {"why", reasons.quarantine}});
           }
           reasons.returning_since.erase(lease.run);
           return true;
         }) > 0;
}

void DeviceBoard::Explain(Device& device) {
  const Reasons& reasons = reasons_[device.id];
  device.unavailable_for_good = device.kind == DeviceKind::kGpu && !gpu_use_.refusal.empty();
  device.unavailable_reason = device.unavailable_for_good ? gpu_use_.refusal
                              : !reasons.fault.empty()    ? reasons.fault
                              : !reasons.drained.empty()  ? reasons.drained
                              : !reasons.quarantine.empty()
                                  ? StrCat("quarantined: ", reasons.quarantine)
                                  : reasons.outsiders;
}

}  // namespace normlab::scheduler
