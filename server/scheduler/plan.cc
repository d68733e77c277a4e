#include "server/scheduler/plan.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/base/strings.h"
#include "server/scheduler/allocation.h"

namespace normlab::scheduler {
namespace {

bool Fits(const Device& device, const std::string& wanted, DeviceKind kind) {
  if (!device.unavailable_reason.empty() || device.kind != kind) return false;
  if (wanted.empty() || wanted == "auto") return true;
  if (wanted == "cpu") return kind == DeviceKind::kCpu;
  if (wanted == "gpu") return kind == DeviceKind::kGpu;
  return device.id == wanted;
}

int64_t CountFitting(const std::vector<Device>& devices, const std::string& wanted,
                     DeviceKind kind) {
  return std::ranges::count_if(devices,
                               [&](const Device& device) { return Fits(device, wanted, kind); });
}

std::string WhyNoGpu(const std::vector<Device>& devices) {
  constexpr size_t kNamed = 3;  // a machine may have eight with the same fault
  std::string reasons;
  size_t gpus = 0;
  bool for_good = true;
  for (const Device& device : devices) {
    if (device.kind != DeviceKind::kGpu) continue;
    for_good = for_good && device.unavailable_for_good;
    if (++gpus > kNamed) continue;
    StrAppend(&reasons, gpus > 1 ? "; " : "", device.id, ": ", device.unavailable_reason);
  }
  if (gpus == 0) return "this server has no GPU; use cpu or auto";
  if (gpus > kNamed) StrAppend(&reasons, "; and ", gpus - kNamed, " more");
  return StrCat("no GPU takes runs (", reasons, ")", for_good ? "; use cpu or auto" : "");
}

Placement PlacementOf(const Snapshot& snapshot, const Holder& holder) {
  const QueuedRun& run = snapshot.queue[holder.queued];
  Placement placement;
  placement.run = run.id;
  placement.name = run.name;
  placement.threads = std::max<int64_t>(1, run.threads);
  for (const int device : holder.devices) {
    placement.devices.push_back(snapshot.devices[device].id);
  }
  placement.lease = {.run = run.id,
                     .name = run.name,
                     .user = run.user,
                     .priority = run.priority,
                     .preemptible = run.preemptible,
                     .exclusive = run.exclusive,
                     .memory_bytes = holder.memory_bytes};
  return placement;
}

}  // namespace

Plan MakePlan(const Snapshot& snapshot) {
  Allocation allocation(snapshot);
  Plan plan;
  for (const int index : allocation.Round({.preempt = true})) {
    plan.start.push_back(PlacementOf(snapshot, allocation.machine().holder(index)));
  }
  for (const Victim& victim : allocation.victims()) {
    const QueuedRun& run = snapshot.queue[victim.queued];
    plan.preempt.push_back({*allocation.machine().holder(victim.holder).run, run.id, run.name});
  }
  return plan;
}

bool MayStartAny(const std::vector<Device>& devices) {
  Snapshot snapshot;
  snapshot.devices = devices;
  const Allocation allocation(snapshot);
  const std::vector<Holder>& holders = allocation.machine().holders();
  return allocation.machine().HasRoom() || std::ranges::any_of(holders, &Holder::preemptible);
}

std::string WhyNever(const std::string& wanted, int64_t threads,
                     const std::vector<Device>& devices) {
  std::vector<std::string> known;
  for (const Device& device : devices) {
    known.push_back(device.id);
    if (device.id == wanted && !device.unavailable_reason.empty()) {
      return StrCat(wanted, " takes no runs: ", device.unavailable_reason);
    }
  }
  const int64_t gpus = CountFitting(devices, wanted, DeviceKind::kGpu);
  const int64_t slots = CountFitting(devices, wanted, DeviceKind::kCpu);
  if (gpus > 0 || slots >= std::max<int64_t>(1, threads)) return "";
  if (slots > 0) {
    return StrCat(threads, " threads are asked for and ", wanted, " has ", slots);
  }
  if (wanted == "gpu") return WhyNoGpu(devices);
  return StrCat("there is no device '", wanted, "'; use auto, cpu, gpu or one of ",
                absl::StrJoin(known, ", "));
}

std::vector<Device> OnceAllIsWell(std::vector<Device> devices) {
  for (Device& device : devices) {
    if (!device.unavailable_for_good) device.unavailable_reason.clear();
  }
  return devices;
}

std::string WhyNever(const QueuedRun& run, const std::vector<Device>& devices) {
  std::string never = WhyNever(run.device, run.threads, devices);
  if (!never.empty()) return never;
  if (CountFitting(devices, run.device, DeviceKind::kCpu) >= std::max<int64_t>(1, run.threads)) {
    return "";
  }
  int64_t large_enough = 0, largest = 0;
  for (const Device& device : devices) {
    if (!Fits(device, run.device, DeviceKind::kGpu)) continue;
    largest = std::max(largest, device.memory_bytes);
    if (device.memory_bytes >= run.gpu_memory_bytes) ++large_enough;
  }
  if (large_enough >= std::max<int64_t>(1, run.gpus)) return "";
  if (large_enough == 0) {
    return StrCat(run.gpu_memory_bytes >> 20,
                  " MiB of GPU memory are asked for and no GPU has more than ", largest >> 20);
  }
  return StrCat(run.gpus, " GPUs are asked for and there are ", large_enough, " that would do");
}

std::string JoinDevices(const std::vector<std::string>& ids) { return absl::StrJoin(ids, ","); }

std::vector<std::string> SplitDevices(const std::string& joined) {
  return absl::StrSplit(joined, ',', absl::SkipEmpty());
}

}  // namespace normlab::scheduler
