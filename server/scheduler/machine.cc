#include "server/scheduler/machine.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace normlab::scheduler {

Demand DemandOf(const QueuedRun& run, const std::vector<Device>& devices) {
  Demand demand;
  demand.threads = std::max<int64_t>(1, run.threads);
  demand.gpus = std::max<int64_t>(1, run.gpus);
  demand.memory_bytes = run.gpu_memory_bytes;
  demand.exclusive = run.exclusive;
  const bool any = run.device.empty() || run.device == "auto";
  demand.cpu = any || run.device == "cpu";
  demand.gpu = any || run.device == "gpu";
  if (demand.cpu || demand.gpu) return demand;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].id != run.device) continue;
    demand.only = static_cast<int>(i);
    demand.cpu = devices[i].kind == DeviceKind::kCpu;
    demand.gpu = !demand.cpu;
  }
  return demand;
}

Machine::Machine(const std::vector<Device>& devices) {
  for (const Device& device : devices) {
    Slot slot;
    slot.usable = device.unavailable_reason.empty();
    slot.gpu = device.kind == DeviceKind::kGpu;
    slot.room_bytes = device.memory_bytes - device.foreign_bytes;
    slots_.push_back(std::move(slot));
  }
}

int Machine::Take(Holder holder) {
  const int index = static_cast<int>(holders_.size());
  for (const int device : holder.devices) slots_[device].holders.push_back(index);
  holders_.push_back(std::move(holder));
  return index;
}

void Machine::Release(int index) {
  for (const int device : holders_[index].devices) {
    std::erase(slots_[device].holders, index);
    slots_[device].last_holder = index;
  }
  holders_[index].gone = true;
}

int64_t Machine::FreeBytes(const Slot& slot) const {
  int64_t bytes = slot.room_bytes;
  for (const int holder : slot.holders) bytes -= holders_[holder].memory_bytes;
  return bytes;
}

bool Machine::HasRoom() const {
  return std::ranges::any_of(slots_, [this](const Slot& slot) {
    if (!slot.usable) return false;
    if (slot.holders.empty()) return true;
    return slot.gpu && !holders_[slot.holders.front()].exclusive && FreeBytes(slot) > 0;
  });
}

bool Machine::Suits(int device, const Demand& demand, bool gpu) const {
  const Slot& slot = slots_[device];
  return slot.usable && slot.gpu == gpu && (demand.only < 0 || demand.only == device);
}

template <typename Gone>
bool Machine::IsFree(const Slot& slot, const Demand& demand, const Gone& gone) const {
  int64_t bytes = slot.room_bytes;
  for (const int index : slot.holders) {
    if (gone(index)) continue;
    // A CPU slot is never shared, a GPU not with one who wants it alone.
    if (!slot.gpu || demand.exclusive || holders_[index].exclusive) return false;
    bytes -= holders_[index].memory_bytes;
  }
  return !slot.gpu || bytes >= demand.memory_bytes;
}

std::vector<int> Machine::Find(const Demand& demand, double end, Reserved reserved,
                               const Without& without) const {
  std::vector<int> found;
  if (demand.gpu) found = FindOfKind(demand, /*gpu=*/true, end, reserved, without);
  if (demand.cpu && found.empty()) {
    found = FindOfKind(demand, /*gpu=*/false, end, reserved, without);
  }
  return found;
}

std::vector<int> Machine::FindOfKind(const Demand& demand, bool gpu, double end, Reserved reserved,
                                     const Without& without) const {
  // Devices that nobody waits for go first, then GPUs with fewer runs, then those with more memory.
  using Choice = std::tuple<bool, size_t, int64_t, int>;
  std::vector<Choice> choices;
  for (int i = 0; i < static_cast<int>(slots_.size()); ++i) {
    const Slot& slot = slots_[i];
    if (!Suits(i, demand, gpu)) continue;
    if (slot.reserved && reserved == Reserved::kKept) continue;
    // Nor is who may never end let in before one whose time is not known either.
    const bool ends_by = slot.reserved && end < *slot.reserved;
    if (slot.reserved && reserved == Reserved::kEndsBy && !ends_by) continue;
    if (!IsFree(slot, demand, [&](int holder) { return !without.empty() && without[holder]; })) {
      continue;
    }
    choices.emplace_back(slot.reserved.has_value(), slot.holders.size(), gpu ? -FreeBytes(slot) : 0,
                         i);
  }
  const auto count = static_cast<size_t>(gpu ? demand.gpus : demand.threads);
  if (choices.size() < count) return {};
  std::ranges::sort(choices);
  std::vector<int> found;
  for (size_t i = 0; i < count; ++i) found.push_back(std::get<3>(choices[i]));
  std::ranges::sort(found);
  return found;
}

double Machine::FreeFrom(const Slot& slot, const Demand& demand, double now) const {
  std::vector<int> holders = slot.holders;
  std::ranges::sort(holders, [this](int a, int b) {
    return std::pair(holders_[a].end, a) < std::pair(holders_[b].end, b);
  });
  // Those before `next` have left.
  for (size_t next = 0; next <= holders.size(); ++next) {
    const auto gone = [&](int holder) {
      return std::find(holders.begin(), holders.begin() + static_cast<ptrdiff_t>(next), holder) !=
             holders.begin() + static_cast<ptrdiff_t>(next);
    };
    if (!IsFree(slot, demand, gone)) continue;
    return next == 0 ? now : std::max(now, holders_[holders[next - 1]].end);
  }
  return -1;  // not even when it is empty
}

Machine::Earliest Machine::EarliestOfKind(const Demand& demand, bool gpu, double now) const {
  std::vector<std::pair<double, int>> choices;
  for (int i = 0; i < static_cast<int>(slots_.size()); ++i) {
    if (!Suits(i, demand, gpu) || slots_[i].reserved) continue;
    const double time = FreeFrom(slots_[i], demand, now);
    if (time >= 0) choices.emplace_back(time, i);
  }
  const auto count = static_cast<size_t>(gpu ? demand.gpus : demand.threads);
  Earliest earliest;
  if (choices.size() < count) return earliest;
  std::ranges::sort(choices);
  for (size_t i = 0; i < count; ++i) earliest.devices.push_back(choices[i].second);
  earliest.time = choices[count - 1].first;
  return earliest;
}

Machine::Earliest Machine::FindEarliest(const Demand& demand, double now) const {
  Earliest earliest;
  if (demand.gpu) earliest = EarliestOfKind(demand, /*gpu=*/true, now);
  if (!demand.cpu) return earliest;
  Earliest cpu = EarliestOfKind(demand, /*gpu=*/false, now);
  const bool sooner = earliest.devices.empty() || cpu.time < earliest.time;
  return !cpu.devices.empty() && sooner ? cpu : earliest;
}

void Machine::Reserve(const std::vector<int>& devices, double time) {
  for (const int device : devices) slots_[device].reserved = time;
}

void Machine::DropReservations() {
  for (Slot& slot : slots_) slot.reserved.reset();
}

}  // namespace normlab::scheduler
