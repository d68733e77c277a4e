// The rules of server/scheduler/allocation.h once more, as slowly and plainly as they can be said:
// to compare plans with.
#ifndef NORMLAB_TESTS_UNIT_SCHEDULER_MODEL_H_
#define NORMLAB_TESTS_UNIT_SCHEDULER_MODEL_H_

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "server/scheduler/snapshot.h"
#include "tests/non_finite.h"

namespace normlab::scheduler::model {

struct Outcome {
  std::vector<std::pair<std::string, std::vector<std::string>>> start;  // run, devices
  std::set<std::string> preempt;
};

class Model {
 public:
  explicit Model(const Snapshot& snapshot) : snapshot_(snapshot) {
    for (const Device& device : snapshot.devices) {
      Place place = {.device = device};
      for (const Lease& lease : device.leases) {
        Tenant tenant = {.lease = lease, .end = kInfinity};
        const auto known = snapshot.holdings.find(lease.run);
        if (lease.returning) {  // any moment
          tenant.stopping = true;
          tenant.end = 0;
        } else if (known != snapshot.holdings.end()) {
          tenant.held = known->second.held_seconds;
          tenant.stopping = known->second.stopping;
          if (known->second.remaining_seconds) {
            tenant.end = std::max(1.0, *known->second.remaining_seconds);
          }
          if (tenant.stopping) tenant.end = 0;
        }
        place.tenants.push_back(tenant);
      }
      places_.push_back(place);
    }
  }

  Outcome Solve() {
    for (const int priority : {1, 0, -1}) {
      std::set<std::string> looked_at;
      while (const QueuedRun* run = Next(priority, looked_at)) {
        looked_at.insert(run->id);
        LookAt(*run);
      }
    }
    return outcome_;
  }

 private:
  struct Tenant {
    Lease lease = {};
    double end = kInfinity;
    double held = 0;
    bool stopping = false;
    bool fresh = false;  // started by this plan
  };
  struct Place {
    Device device;
    std::vector<Tenant> tenants = {};
    std::optional<double> reserved = {};
  };
  using Names = std::set<std::string>;

  bool Waits(const QueuedRun& run) const {
    for (const auto& [started, devices] : outcome_.start) {
      if (started == run.id) return false;
    }
    return !run.held && run.unmet.empty() && run.not_before.value_or(0) <= 0;
  }
  const UserState& UserOf(const std::string& user) const {
    static const UserState kNobody;
    const auto found = snapshot_.users.find(user);
    return found == snapshot_.users.end() ? kNobody : found->second;
  }
  int64_t DevicesOf(const std::string& user) const {
    int64_t count = 0;
    for (const Place& place : places_) {
      for (const Tenant& tenant : place.tenants) count += tenant.lease.user == user;
    }
    return count;
  }
  int64_t RunsOf(const std::string& user) const {
    Names runs;
    for (const Place& place : places_) {
      for (const Tenant& tenant : place.tenants) {
        if (tenant.lease.user == user) runs.insert(tenant.lease.run);
      }
    }
    return static_cast<int64_t>(runs.size());
  }
  int64_t GpuMemoryOf(const std::string& user) const {
    int64_t bytes = 0;
    for (const Place& place : places_) {
      if (place.device.kind != DeviceKind::kGpu) continue;
      for (const Tenant& tenant : place.tenants) {
        if (tenant.lease.user == user) bytes += tenant.lease.memory_bytes;
      }
    }
    return bytes;
  }
  bool RunsEnough(const std::string& user) const {
    const int64_t limit = UserOf(user).max_running;
    return limit > 0 && RunsOf(user) >= limit;
  }
  bool MayUse(const std::string& user, int64_t bytes) const {
    const int64_t limit = UserOf(user).max_gpu_memory_bytes;
    return limit == 0 || GpuMemoryOf(user) + bytes <= limit;
  }
  std::string OldestOf(const std::string& user, int priority) const {
    std::string oldest;
    for (const QueuedRun& run : snapshot_.queue) {
      if (run.user != user || run.priority != priority || !Waits(run)) continue;
      if (oldest.empty() || run.id < oldest) oldest = run.id;
    }
    return oldest;
  }

  const QueuedRun* Next(int priority, const Names& looked_at) const {
    using Key = std::tuple<double, std::string, int64_t, std::string>;
    std::optional<Key> best;
    const QueuedRun* next = nullptr;
    for (const QueuedRun& run : snapshot_.queue) {
      if (run.priority != priority || !Waits(run) || looked_at.contains(run.id)) continue;
      if (RunsEnough(run.user)) continue;
      const double share =
          UserOf(run.user).device_seconds + 60.0 * static_cast<double>(DevicesOf(run.user));
      const Key key = {share, OldestOf(run.user, priority), run.rank, run.id};
      if (best && *best <= key) continue;
      best = key;
      next = &run;
    }
    return next;
  }

  bool Suits(const Place& place, const QueuedRun& run, DeviceKind kind) const {
    if (!place.device.unavailable_reason.empty() || place.device.kind != kind) return false;
    if (run.device == "auto") return true;
    if (run.device == "cpu") return kind == DeviceKind::kCpu;
    if (run.device == "gpu") return kind == DeviceKind::kGpu;
    return run.device == place.device.id;
  }
  static int64_t FreeBytes(const Place& place, const Names& without, double later_than) {
    int64_t bytes = place.device.memory_bytes - place.device.foreign_bytes;
    for (const Tenant& tenant : place.tenants) {
      if (!without.contains(tenant.lease.run) && tenant.end > later_than) {
        bytes -= tenant.lease.memory_bytes;
      }
    }
    return bytes;
  }
  // With those in `without` gone, and those who end until `time`.
  static bool IsFree(const Place& place, const QueuedRun& run, const Names& without,
                     double time = -1) {
    bool alone = true, shareable = true;
    for (const Tenant& tenant : place.tenants) {
      if (without.contains(tenant.lease.run) || tenant.end <= time) continue;
      alone = false;
      if (tenant.lease.exclusive) shareable = false;
    }
    if (place.device.kind == DeviceKind::kCpu) return alone;
    if (FreeBytes(place, without, time) < run.gpu_memory_bytes) return false;
    return run.exclusive ? alone : shareable;
  }
  static size_t Count(const QueuedRun& run, DeviceKind kind) {
    return static_cast<size_t>(
        std::max<int64_t>(1, kind == DeviceKind::kGpu ? run.gpus : run.threads));
  }
  std::vector<DeviceKind> KindsFor(const QueuedRun& run) const {
    std::vector<DeviceKind> kinds;
    if (MayUse(run.user, std::max<int64_t>(1, run.gpus) * run.gpu_memory_bytes)) {
      kinds.push_back(DeviceKind::kGpu);
    }
    kinds.push_back(DeviceKind::kCpu);
    return kinds;
  }

  // Indices of places, best first and no more than needed; empty when there are too few.
  std::vector<size_t> Choose(const QueuedRun& run, DeviceKind kind, double end, bool strict,
                             const Names& without) const {
    std::vector<std::tuple<bool, size_t, int64_t, size_t>> good;
    for (size_t i = 0; i < places_.size(); ++i) {
      const Place& place = places_[i];
      if (!Suits(place, run, kind) || !IsFree(place, run, without)) continue;
      if (place.reserved && (strict || end >= *place.reserved)) continue;
      const int64_t bytes = kind == DeviceKind::kGpu ? FreeBytes(place, {}, -1) : 0;
      good.emplace_back(place.reserved.has_value(), place.tenants.size(), -bytes, i);
    }
    std::sort(good.begin(), good.end());
    std::vector<size_t> chosen;
    if (good.size() < Count(run, kind)) return chosen;
    for (size_t i = 0; i < Count(run, kind); ++i) chosen.push_back(std::get<3>(good[i]));
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }

  void LookAt(const QueuedRun& run) {
    const double end = run.expected_seconds.value_or(kInfinity);
    for (const DeviceKind kind : KindsFor(run)) {
      const std::vector<size_t> chosen = Choose(run, kind, std::max(1.0, end), false, {});
      if (chosen.empty()) continue;
      std::vector<std::string> ids;
      for (const size_t i : chosen) {
        Tenant tenant = {.end = end, .fresh = true};
        tenant.lease = {.run = run.id, .user = run.user, .exclusive = run.exclusive};
        if (kind == DeviceKind::kGpu) tenant.lease.memory_bytes = run.gpu_memory_bytes;
        places_[i].tenants.push_back(tenant);
        ids.push_back(places_[i].device.id);
      }
      outcome_.start.emplace_back(run.id, ids);
      return;
    }
    KeepRoom(run);
  }

  void KeepRoom(const QueuedRun& run) {
    double time = kInfinity;
    std::vector<size_t> first;
    for (const DeviceKind kind : KindsFor(run)) {
      std::vector<std::pair<double, size_t>> free;
      for (size_t i = 0; i < places_.size(); ++i) {
        if (!Suits(places_[i], run, kind) || places_[i].reserved) continue;
        std::set<double> moments = {0};
        for (const Tenant& tenant : places_[i].tenants) moments.insert(tenant.end);
        for (const double moment : moments) {
          if (!IsFree(places_[i], run, {}, moment)) continue;
          free.emplace_back(moment, i);
          break;
        }
      }
      std::sort(free.begin(), free.end());
      const size_t count = Count(run, kind);
      if (free.size() < count) continue;
      if (!first.empty() && free[count - 1].first >= time) continue;
      time = free[count - 1].first;
      first.clear();
      for (size_t i = 0; i < count; ++i) first.push_back(free[i].second);
    }
    if (first.empty()) return;
    if (time > 0) {
      const std::vector<size_t> freed = Pause(run);
      if (!freed.empty()) {
        first = freed;
        time = 0;
      }
    }
    for (const size_t i : first) places_[i].reserved = time;
  }

  std::vector<size_t> Room(const QueuedRun& run, const Names& without) const {
    for (const DeviceKind kind : KindsFor(run)) {
      std::vector<size_t> chosen = Choose(run, kind, kInfinity, true, without);
      if (!chosen.empty()) return chosen;
    }
    return {};
  }

  std::vector<size_t> Pause(const QueuedRun& run) {
    std::map<std::string, const Tenant*> candidates;
    Names gone;
    for (const Place& place : places_) {
      for (const Tenant& tenant : place.tenants) {
        if (tenant.fresh) continue;
        if (tenant.stopping) gone.insert(tenant.lease.run);
        if (tenant.stopping || !tenant.lease.preemptible) continue;
        if (tenant.lease.priority < run.priority) candidates[tenant.lease.run] = &tenant;
      }
    }
    for (const auto& [name, tenant] : candidates) gone.insert(name);
    if (candidates.empty() || Room(run, gone).empty()) return {};
    // Spare whom one can: the highest class first, then who has run longest.
    std::vector<std::tuple<int, double, std::string>> order;
    for (const auto& [name, tenant] : candidates) {
      order.emplace_back(-tenant->lease.priority, -tenant->held, name);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [priority, held, name] : order) {
      gone.erase(name);
      if (Room(run, gone).empty()) gone.insert(name);
    }
    const std::vector<size_t> freed = Room(run, gone);
    for (Place& place : places_) {
      for (Tenant& tenant : place.tenants) {
        if (!candidates.contains(tenant.lease.run) || !gone.contains(tenant.lease.run)) continue;
        tenant.stopping = true;
        tenant.end = 0;
        outcome_.preempt.insert(tenant.lease.run);
      }
    }
    return freed;
  }

  const Snapshot& snapshot_;
  std::vector<Place> places_;
  Outcome outcome_;
};

}  // namespace normlab::scheduler::model

#endif  // NORMLAB_TESTS_UNIT_SCHEDULER_MODEL_H_
