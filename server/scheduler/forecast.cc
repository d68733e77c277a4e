#include "server/scheduler/forecast.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "server/base/strings.h"
#include "server/scheduler/allocation.h"
#include "server/scheduler/plan.h"

namespace normlab::scheduler {
namespace {

// A later run that asks for the same is let past in a forecast only among so many: a plan looks at
// all, and a forecast makes thousands of rounds.
constexpr size_t kDepth = 20;
constexpr size_t kTries = 32;            // and in all, so many in a row
constexpr double kPauseSeconds = 10;     // that a run takes to write a checkpoint and end
constexpr double kUnknownSeconds = 600;  // passes until a run ends of which nothing is known

struct Start {
  int queued = 0;
  std::optional<double> time = {};
  int blocker = -1;  // holder that left its devices last; -1: they were free
  int device = 0;    // which of them
};

// Plays the future through and notes the starts.
class Future {
 public:
  explicit Future(const Snapshot& snapshot) : allocation_(snapshot) {
    for (size_t i = 0; i < allocation_.machine().holders().size(); ++i) {
      Follow(static_cast<int>(i));
    }
  }

  Allocation& allocation() { return allocation_; }
  const std::vector<Start>& starts() const { return starts_; }

  void First() { Round(/*preempt=*/true); }
  // False when it was broken off after so many starts.
  bool Rest(size_t starts) {
    for (const Victim& victim : allocation_.victims()) SetEnd(victim.holder, kPauseSeconds);
    while (allocation_.HasWaiting() || allocation_.NextNotBefore() < kNever) {
      if (starts_.size() >= starts) return false;
      if (!PassToNextEvent()) return true;
      Round(/*preempt=*/false);
    }
    return true;
  }

 private:
  void Follow(int holder) { ends_.emplace(allocation_.machine().holder(holder).end, holder); }
  void SetEnd(int index, double end) {
    // Its old end is that of a running one; whatever it was, it is followed anew.
    std::erase_if(ends_, [index](const auto& entry) { return entry.second == index; });
    allocation_.machine().holder(index).end = end;
    Follow(index);
  }

  void Round(bool preempt) {
    for (const int index :
         allocation_.Round({.preempt = preempt, .depth = kDepth, .tries = kTries})) {
      Follow(index);
      const Holder& holder = allocation_.machine().holder(index);
      Start start = {.queued = holder.queued};
      if (certain_) start.time = allocation_.now();
      double latest = -1;
      for (const int device : holder.devices) {
        const int before = allocation_.machine().last_holder(device);
        if (before < 0 || left_[before] <= latest) continue;
        latest = left_[before];
        start.blocker = before;
        start.device = device;
      }
      starts_.push_back(start);
    }
  }

  // False when nothing more will happen.
  bool PassToNextEvent() {
    double time = allocation_.NextNotBefore();
    if (!ends_.empty()) time = std::min(time, ends_.begin()->first);
    if (time < kNever) {
      allocation_.PassTo(std::max(time, allocation_.now()));
      while (!ends_.empty() && ends_.begin()->first <= time) Release();
      return true;
    }
    // Only runs are left of which nobody knows when they end: the one that began first does now.
    if (ends_.empty()) return false;
    certain_ = false;
    allocation_.PassTo(allocation_.now() + kUnknownSeconds);
    Release();
    return true;
  }

  void Release() {
    const int holder = ends_.begin()->second;
    ends_.erase(ends_.begin());
    if (left_.size() <= static_cast<size_t>(holder)) left_.resize(holder + 1, -1);
    left_[holder] = allocation_.now();
    allocation_.Release(holder);
  }

  Allocation allocation_;
  std::set<std::pair<double, int>> ends_;  // of those that hold devices, by index
  std::vector<double> left_;               // when a holder left, by index
  std::vector<Start> starts_;
  bool certain_ = true;
};

std::string BytesWords(int64_t bytes) {
  const double gib = static_cast<double>(bytes) / (1 << 30);
  return StrCat(std::round(gib * 10) / 10, " GiB");
}

// Why the rules keep it from starting whatever is free; empty if they do not.
std::string LimitReason(const Allocation& allocation, int queued) {
  const Account& account = allocation.account(allocation.user(queued));
  if (account.RunsEnough()) {
    return StrCat(*account.name, " already runs ", account.running, " of at most ",
                  account.limits.max_running);
  }
  const Demand& demand = allocation.demand(queued);
  if (demand.gpu && !demand.cpu && !account.MayUse(demand.gpus * demand.memory_bytes)) {
    return StrCat("asks for ", BytesWords(demand.gpus * demand.memory_bytes),
                  " of GPU memory, and ", *account.name, " already uses ",
                  BytesWords(account.gpu_memory_bytes), " of at most ",
                  BytesWords(account.limits.max_gpu_memory_bytes));
  }
  return "";
}

// What is missing on a GPU that may be shared; empty where it is not about memory.
std::string RoomText(const Device& device, const Demand& demand) {
  if (device.kind != DeviceKind::kGpu || demand.exclusive) return "";
  int64_t room = device.memory_bytes - device.foreign_bytes;
  for (const Lease& lease : device.leases) {
    if (lease.exclusive) return "";
    room -= lease.memory_bytes;
  }
  if (room >= demand.memory_bytes) return "";
  return StrCat(": asks for ", BytesWords(demand.memory_bytes), ", and ",
                BytesWords(std::max<int64_t>(0, room)), " of ", BytesWords(device.memory_bytes),
                " are not lent");
}

std::string Plural(int64_t count, std::string_view what) {
  return StrCat(count, " ", what, count == 1 ? "" : "s");
}

// Why a run fits on no GPU, whoever of ours has left.
std::string NoRoomText(const Snapshot& snapshot, const QueuedRun& run) {
  const Device* roomiest = nullptr;
  const auto room = [](const Device& device) { return device.memory_bytes - device.foreign_bytes; };
  for (const Device& device : snapshot.devices) {
    const bool suits = run.device == device.id || run.device == "gpu" || run.device == "auto";
    if (device.kind != DeviceKind::kGpu || !suits || !device.unavailable_reason.empty()) continue;
    if (roomiest == nullptr || room(device) > room(*roomiest)) roomiest = &device;
  }
  if (roomiest == nullptr) return "none has room for it";
  return StrCat("asks for ", BytesWords(run.gpu_memory_bytes), " of ",
                run.gpus > 1 ? Plural(run.gpus, "GPU") : std::string("a GPU"),
                ", and others leave ", BytesWords(std::max<int64_t>(0, room(*roomiest))), " of ",
                BytesWords(roomiest->memory_bytes), " on ", roomiest->id);
}

class Words {
 public:
  explicit Words(const Snapshot& snapshot) : snapshot_(snapshot) {
    for (const QueuedRun& run : snapshot.queue) ++classes_[ClassOf(run)].waiting;
  }

  // The runs that a forecast says start, in their order.
  void Starts(Future& future, const std::vector<std::string>& limits) {
    for (const Start& start : future.starts()) {
      Waiting& waiting = Add(start.queued);
      waiting.position = static_cast<int64_t>(forecast_.size());
      waiting.start_seconds = start.time;
      Explain(future, start, limits[start.queued], waiting);
      ++classes_[ClassOf(snapshot_.queue[start.queued])].started;
    }
  }
  // Those that it never lets start.
  void Stuck(const std::vector<std::string>& limits) {
    for (size_t i = 0; i < snapshot_.queue.size(); ++i) {
      const QueuedRun& run = snapshot_.queue[i];
      if (done_[i] || run.held || !run.unmet.empty()) continue;
      Waiting& waiting = Add(static_cast<int>(i));
      waiting.position = static_cast<int64_t>(forecast_.size());
      waiting.cause = limits[i].empty() ? Waiting::Cause::kNoDevice : Waiting::Cause::kLimit;
      waiting.reason = limits[i];
      if (!limits[i].empty()) continue;
      const std::string never = WhyNever(run, snapshot_.devices);
      waiting.reason = StrCat("no device: ", never.empty() ? NoRoomText(snapshot_, run) : never);
    }
  }
  void NotStartable() {
    for (size_t i = 0; i < snapshot_.queue.size(); ++i) {
      const QueuedRun& run = snapshot_.queue[i];
      if (done_[i]) continue;
      Waiting& waiting = Add(static_cast<int>(i));
      waiting.cause = run.held ? Waiting::Cause::kHeld : Waiting::Cause::kRun;
      waiting.reason = run.held ? "held" : StrCat("waits for run ", run.unmet, " to end");
    }
  }
  std::vector<Waiting> Take() { return std::move(forecast_); }

 private:
  struct Class {
    int64_t waiting = 0;
    int64_t started = 0;
  };
  static size_t ClassOf(const QueuedRun& run) { return static_cast<size_t>(1 - run.priority); }

  Waiting& Add(int queued) {
    done_[queued] = true;
    forecast_.push_back({.run = snapshot_.queue[queued].id});
    return forecast_.back();
  }

  void Explain(Future& future, const Start& start, const std::string& limit, Waiting& waiting) {
    using Cause = Waiting::Cause;
    const QueuedRun& run = snapshot_.queue[start.queued];
    if (run.not_before.value_or(0) > 0) {
      waiting.cause = Cause::kTime;
      waiting.reason = "tried again";
    } else if (!limit.empty()) {
      waiting.cause = Cause::kLimit;
      waiting.reason = limit;
    } else if (start.blocker >= 0 &&
               future.allocation().machine().holder(start.blocker).queued < 0) {
      const Holder& holder = future.allocation().machine().holder(start.blocker);
      waiting.cause = Cause::kDevice;
      waiting.reason = StrCat(
          "waits for run ", *holder.name, " on ", snapshot_.devices[start.device].id,
          holder.stopping ? " to stop" : "",
          RoomText(snapshot_.devices[start.device], future.allocation().demand(start.queued)));
    } else if (start.blocker < 0 && start.time == 0.0) {
      waiting.cause = Cause::kNext;
      waiting.reason = "starts next";
    } else {
      int64_t higher = 0;
      for (size_t i = 0; i < ClassOf(run); ++i) higher += classes_[i].started;
      const int64_t ahead = waiting.position - 1;
      waiting.reason = higher > 0  ? StrCat("waits its turn behind ", Plural(higher, "run"),
                                            " of higher priority")
                       : ahead > 0 ? StrCat("waits its turn behind ", Plural(ahead, "run"))
                                   : std::string("waits its turn");
    }
  }

  const Snapshot& snapshot_;
  Class classes_[3];
  std::vector<bool> done_ = std::vector<bool>(snapshot_.queue.size());
  std::vector<Waiting> forecast_;
};

}  // namespace

std::vector<Waiting> MakeForecast(const Snapshot& snapshot, size_t starts) {
  Future future(snapshot);
  future.First();
  // What limits say now, when all that may start has.
  std::vector<std::string> limits(snapshot.queue.size());
  std::vector<bool> started(snapshot.queue.size());
  for (const Start& start : future.starts()) started[start.queued] = true;
  for (size_t i = 0; i < snapshot.queue.size(); ++i) {
    if (!started[i]) limits[i] = LimitReason(future.allocation(), static_cast<int>(i));
  }
  const bool whole = future.Rest(starts);
  Words words(snapshot);
  words.Starts(future, limits);
  if (whole) words.Stuck(limits);
  words.NotStartable();
  return words.Take();
}

std::string AboutText(double seconds) {
  if (seconds < 1) return "any moment";
  if (seconds < 99.5) return StrCat("about ", std::llround(seconds), " s");
  if (seconds < 99.5 * 60) return StrCat("about ", std::llround(seconds / 60), " min");
  if (seconds < 47.5 * 3600) return StrCat("about ", std::llround(seconds / 3600), " h");
  return StrCat("about ", std::llround(seconds / 86400), " days");
}

std::string ReasonWithTime(const Waiting& waiting) {
  using Cause = Waiting::Cause;
  if (!waiting.start_seconds || waiting.cause == Cause::kNext) return waiting.reason;
  if (waiting.cause == Cause::kTime) {
    return StrCat(waiting.reason, " in ", std::llround(std::ceil(*waiting.start_seconds)), " s");
  }
  return StrCat(waiting.reason, ", ", AboutText(*waiting.start_seconds));
}

}  // namespace normlab::scheduler
