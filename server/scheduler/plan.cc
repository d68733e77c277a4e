#include "server/scheduler/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/base/strings.h"

namespace normlab::scheduler {
namespace {

bool Fits(const Device& device, const std::string& wanted) {
  if (!device.unavailable_reason.empty()) return false;
  // Until the engine trains on GPUs, auto means a CPU slot.
  if (wanted.empty() || wanted == "auto" || wanted == "cpu") return device.kind == DeviceKind::kCpu;
  if (wanted == "gpu") return device.kind == DeviceKind::kGpu;
  return device.id == wanted;
}

std::string HoldersOf(const std::vector<const Device*>& devices) {
  std::map<std::string, std::string> holders;  // names by id
  for (const Device* device : devices) {
    for (const Lease& lease : device->leases) holders[lease.run] = lease.name;
  }
  const size_t shown = std::min<size_t>(holders.size(), 2);
  std::string text;
  size_t count = 0;
  for (const auto& [id, name] : holders) {
    if (count++ == shown) break;
    StrAppend(&text, text.empty() ? "" : ", ", name);
  }
  if (holders.size() > shown) StrAppend(&text, " and ", holders.size() - shown, " more");
  return text;
}

}  // namespace

Plan MakePlan(const std::vector<QueuedRun>& queue, const std::vector<Device>& devices) {
  Plan plan;
  std::vector<Device> now = devices;
  std::set<std::string> held_back;  // devices that an earlier run waits for
  for (const QueuedRun& run : queue) {
    std::vector<const Device*> suitable;
    std::vector<Device*> free;
    for (Device& device : now) {
      if (!Fits(device, run.device)) continue;
      suitable.push_back(&device);
      if (device.leases.empty() && !held_back.contains(device.id)) free.push_back(&device);
    }
    const auto wanted = static_cast<size_t>(std::max<int64_t>(1, run.threads));
    if (free.size() >= wanted) {
      Placement placement{run.id, run.name, {}};
      for (size_t i = 0; i < wanted; ++i) {
        free[i]->leases.push_back({.run = run.id, .name = run.name});
        placement.devices.push_back(free[i]->id);
      }
      plan.start.push_back(std::move(placement));
      continue;
    }
    if (suitable.size() < wanted) {
      plan.wait.push_back({run.id, StrCat("no device: ", WhyNever(run.device, run.threads, now))});
      continue;
    }
    const std::string holders = HoldersOf(suitable);
    plan.wait.push_back({run.id, holders.empty()
                                     ? std::string("waits for its turn behind earlier runs")
                                     : StrCat("waits for ", holders)});
    for (const Device* device : suitable) held_back.insert(device->id);
  }
  return plan;
}

std::string WhyNever(const std::string& wanted, int64_t threads,
                     const std::vector<Device>& devices) {
  int64_t suitable = 0;
  std::vector<std::string> known;
  for (const Device& device : devices) {
    known.push_back(device.id);
    if (device.id == wanted && !device.unavailable_reason.empty()) {
      return StrCat(wanted, " takes no runs: ", device.unavailable_reason);
    }
    if (Fits(device, wanted)) ++suitable;
  }
  if (suitable >= std::max<int64_t>(1, threads)) return "";
  if (suitable > 0) {
    return StrCat(threads, " threads are asked for and ", wanted, " has ", suitable);
  }
  if (wanted == "gpu") return "this server has no GPU that it can train on; use cpu or auto";
  return StrCat("there is no device '", wanted, "'; use auto, cpu, gpu or one of ",
                absl::StrJoin(known, ", "));
}

std::string JoinDevices(const std::vector<std::string>& ids) { return absl::StrJoin(ids, ","); }

std::vector<std::string> SplitDevices(const std::string& joined) {
  return absl::StrSplit(joined, ',', absl::SkipEmpty());
}

}  // namespace normlab::scheduler
