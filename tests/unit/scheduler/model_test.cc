// Plans compared with the slow model, over random moments and random histories.
#include "tests/unit/scheduler/model.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/strings.h"
#include "server/scheduler/fair_share.h"
#include "server/scheduler/forecast.h"
#include "tests/unit/scheduler/snapshots.h"

namespace normlab::scheduler {
namespace {

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  int Below(int limit) { return static_cast<int>(engine_() % static_cast<uint64_t>(limit)); }
  bool OneIn(int count) { return Below(count) == 0; }
  template <typename T>
  const T& Of(const std::vector<T>& choices) {
    return choices[Below(static_cast<int>(choices.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

uint64_t FirstSeed() {
  const char* given = std::getenv("NORMLAB_TEST_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

const std::vector<std::string>& Users() {
  static const std::vector<std::string> users = {"ann", "bob", "cid"};
  return users;
}

// What a machine of a random history or moment is like.
Snapshot Machine(Dice& dice) {
  Snapshot snapshot;
  AddSlots(snapshot, 1 + dice.Below(4));
  if (dice.OneIn(2)) AddGpus(snapshot, 1 + dice.Below(3), 8);
  for (Device& device : snapshot.devices) {
    if (dice.OneIn(10)) device.unavailable_reason = "drained";
    if (device.kind == DeviceKind::kGpu && dice.OneIn(4)) device.foreign_bytes = dice.Below(9);
  }
  for (const std::string& user : Users()) {
    if (dice.OneIn(2)) snapshot.users[user].device_seconds = 50 * dice.Below(5);
    if (dice.OneIn(4)) snapshot.users[user].max_running = 1 + dice.Below(3);
    if (dice.OneIn(4)) snapshot.users[user].max_gpu_memory_bytes = 1 + dice.Below(12);
  }
  return snapshot;
}

QueuedRun Request(Dice& dice, const Snapshot& snapshot, int number) {
  static const std::vector<std::string> kinds = {"auto", "auto", "cpu", "gpu"};
  QueuedRun run = {.id = StrCat("r", 100'000 + number)};
  run.user = dice.Of(Users());
  run.priority = dice.Below(3) - 1;
  run.rank = dice.OneIn(3) ? dice.Below(5) - 2 : 0;
  run.device = dice.OneIn(6) ? dice.Of(snapshot.devices).id : dice.Of(kinds);
  const bool named = run.device.find(':') != std::string::npos;
  run.threads = named ? 1 : 1 + dice.Below(3);
  run.gpus = named ? 1 : 1 + dice.Below(2);
  run.gpu_memory_bytes = dice.Below(9);
  run.exclusive = dice.OneIn(5);
  run.preemptible = dice.OneIn(3);
  run.held = dice.OneIn(12);
  if (dice.OneIn(12)) run.unmet = "other";
  if (dice.OneIn(8)) run.not_before = dice.Below(3) - 1;
  if (!dice.OneIn(3)) run.expected_seconds = 10 * dice.Below(12);
  return run;
}

void Apply(const Plan& plan, Snapshot& snapshot) {
  for (const Placement& placement : plan.start) {
    Holding holding;
    for (const QueuedRun& run : snapshot.queue) {
      if (run.id == placement.run) holding.remaining_seconds = run.expected_seconds;
    }
    Hold(snapshot, placement.lease, placement.devices, holding);
    std::erase_if(snapshot.queue, [&](const QueuedRun& run) { return run.id == placement.run; });
  }
  for (const Preemption& one : plan.preempt) snapshot.holdings[one.run].stopping = true;
}

// The run has ended, and the memory of its GPUs, if it has any, is not back yet.
void LetReturn(const std::string& run, Snapshot& snapshot) {
  for (Device& device : snapshot.devices) {
    if (device.kind == DeviceKind::kCpu) continue;
    for (Lease& lease : device.leases) lease.returning = lease.returning || lease.run == run;
  }
}

// What holds of every machine, whatever was decided; empty, or what does not hold.
std::string Broken(const Snapshot& snapshot) {
  std::map<std::string, std::set<std::string>> runs;
  std::map<std::string, int64_t> memory;
  for (const Device& device : snapshot.devices) {
    const size_t count = device.leases.size();
    int64_t used = device.foreign_bytes;
    for (const Lease& lease : device.leases) {
      runs[lease.user].insert(lease.run);
      if (device.kind == DeviceKind::kCpu) continue;
      used += lease.memory_bytes;
      memory[lease.user] += lease.memory_bytes;
      if (lease.exclusive && count > 1) return device.id + " is shared with an exclusive run";
    }
    if (device.kind == DeviceKind::kCpu && count > 1) return device.id + " has two runs";
    if (count > 0 && !device.unavailable_reason.empty()) return device.id + " takes no runs";
    if (device.kind == DeviceKind::kGpu && count > 0 && used > device.memory_bytes) {
      return device.id + " is promised twice";
    }
  }
  for (const auto& [user, state] : snapshot.users) {
    if (state.max_running > 0 && static_cast<int64_t>(runs[user].size()) > state.max_running) {
      return user + " runs too many";
    }
    if (state.max_gpu_memory_bytes > 0 && memory[user] > state.max_gpu_memory_bytes) {
      return user + " uses too much memory";
    }
  }
  return "";
}

void ExpectAsTheModelSays(const Snapshot& snapshot, const Plan& plan) {
  const model::Outcome expected = model::Model(snapshot).Solve();
  std::vector<std::pair<std::string, std::vector<std::string>>> start;
  for (const Placement& placement : plan.start)
    start.emplace_back(placement.run, placement.devices);
  std::set<std::string> preempt;
  for (const Preemption& one : plan.preempt) preempt.insert(one.run);
  ASSERT_EQ(start, expected.start);
  ASSERT_EQ(preempt, expected.preempt);
}

// A forecast names every queued run once; what a plan starts now it expects to start now.
void ExpectWholeForecast(const Snapshot& snapshot, const Plan& plan) {
  const std::vector<Waiting> forecast = MakeForecast(snapshot);
  std::map<std::string, const Waiting*> by_run;
  int64_t last = 0;
  for (const Waiting& waiting : forecast) {
    EXPECT_FALSE(waiting.reason.empty());
    by_run[waiting.run] = &waiting;
    if (waiting.position == 0) continue;
    EXPECT_EQ(waiting.position, last + 1);
    last = waiting.position;
  }
  ASSERT_EQ(by_run.size(), snapshot.queue.size());
  ASSERT_EQ(forecast.size(), snapshot.queue.size());
  for (const Placement& placement : plan.start) {
    ASSERT_EQ(by_run.at(placement.run)->start_seconds, 0.0);
  }
  for (const QueuedRun& run : snapshot.queue) {
    EXPECT_EQ(by_run.at(run.id)->position == 0, run.held || !run.unmet.empty());
  }
}

TEST(ModelTest, RandomMomentsArePlannedAsTheModelDoes) {
  const uint64_t first = FirstSeed();
  size_t starts = 0, preemptions = 0;
  for (uint64_t seed = first; seed < first + 3000; ++seed) {
    SCOPED_TRACE(StrCat("NORMLAB_TEST_SEED=", seed));
    Dice dice(seed);
    Snapshot snapshot = Machine(dice);
    // Who is there already came by plans as well.
    for (int i = 0; i < dice.Below(8); ++i) {
      snapshot.queue.push_back(Request(dice, snapshot, i));
    }
    Apply(MakePlan(snapshot), snapshot);
    for (auto& [run, holding] : snapshot.holdings) {
      holding.held_seconds = dice.Below(100);
      if (dice.OneIn(10)) holding.stopping = true;
      if (dice.OneIn(6)) LetReturn(run, snapshot);
    }
    for (int i = 0; i < dice.Below(25); ++i) {
      snapshot.queue.push_back(Request(dice, snapshot, 100 + i));
    }
    std::shuffle(snapshot.queue.begin(), snapshot.queue.end(), std::mt19937_64(seed));
    const Plan plan = MakePlan(snapshot);
    ExpectAsTheModelSays(snapshot, plan);
    ExpectWholeForecast(snapshot, plan);
    starts += plan.start.size();
    preemptions += plan.preempt.size();
    Apply(plan, snapshot);
    ASSERT_EQ(Broken(snapshot), "");
    if (HasFailure()) return;
  }
  EXPECT_GT(starts, 1000u);  // or nothing was compared
  EXPECT_GT(preemptions, 100u);
}

// A machine to which things happen.
class History {
 public:
  explicit History(uint64_t seed) : dice_(seed), snapshot_(Machine(dice_)) {}

  void Step() {
    const double seconds = dice_.OneIn(3) ? 0 : dice_.Below(40);
    Pass(seconds);
    switch (dice_.Below(8)) {
      case 0:
      case 1:
      case 2:
        snapshot_.queue.push_back(Request(dice_, snapshot_, ++submitted_));
        break;
      case 3:
      case 4:
        EndOne();
        break;
      case 5:
        if (!snapshot_.queue.empty()) {  // cancelled
          snapshot_.queue.erase(snapshot_.queue.begin() +
                                dice_.Below(static_cast<int>(snapshot_.queue.size())));
        }
        break;
      case 6:
        if (!snapshot_.queue.empty())
          Change(snapshot_.queue[dice_.Below(static_cast<int>(snapshot_.queue.size()))]);
        break;
      default:
        Restrict(snapshot_.users[dice_.Of(Users())]);
    }
    for (const std::string& user : Users()) snapshot_.users[user].device_seconds = 0;
    for (const auto& [user, used] : ledger_.At(now_)) snapshot_.users[user].device_seconds = used;
    const Plan plan = MakePlan(snapshot_);
    ExpectAsTheModelSays(snapshot_, plan);
    for (const Placement& placement : plan.start) {
      ledger_.Take(placement.run, placement.lease.user,
                   static_cast<double>(placement.devices.size()), now_);
    }
    Apply(plan, snapshot_);
    starts += plan.start.size();
  }
  const Snapshot& snapshot() const { return snapshot_; }
  size_t starts = 0;

 private:
  void Pass(double seconds) {
    now_ += seconds;
    for (auto& [run, holding] : snapshot_.holdings) {
      holding.held_seconds += seconds;
      if (holding.remaining_seconds) {
        holding.remaining_seconds = std::max(0.0, *holding.remaining_seconds - seconds);
      }
    }
    for (QueuedRun& run : snapshot_.queue) {
      if (run.not_before) *run.not_before -= seconds;
    }
  }
  void EndOne() {
    if (snapshot_.holdings.empty()) return;
    auto one = snapshot_.holdings.begin();
    std::advance(one, dice_.Below(static_cast<int>(snapshot_.holdings.size())));
    const std::string run = one->first;
    snapshot_.holdings.erase(one);
    ledger_.Return(run, now_);
    for (Device& device : snapshot_.devices) {
      std::erase_if(device.leases, [&](const Lease& lease) { return lease.run == run; });
    }
  }
  void Change(QueuedRun& run) {
    run.held = dice_.OneIn(3);
    run.priority = dice_.Below(3) - 1;
    run.rank = dice_.Below(5) - 2;
    run.unmet.clear();
  }
  // Never below what is used: limits are about what starts.
  void Restrict(UserState& user) {
    user.max_running = dice_.OneIn(2) ? 0 : user.max_running;
    user.max_gpu_memory_bytes = dice_.OneIn(2) ? 0 : user.max_gpu_memory_bytes;
  }

  Dice dice_;
  Snapshot snapshot_;
  UsageLedger ledger_;
  double now_ = 0;
  int submitted_ = 0;
};

TEST(ModelTest, RandomHistoriesAreLivedAsTheModelWould) {
  const uint64_t first = FirstSeed();
  size_t starts = 0;
  for (uint64_t seed = first; seed < first + 60; ++seed) {
    SCOPED_TRACE(StrCat("NORMLAB_TEST_SEED=", seed));
    History history(seed);
    for (int i = 0; i < 150; ++i) {
      history.Step();
      ASSERT_EQ(Broken(history.snapshot()), "") << "step " << i;
      if (HasFatalFailure()) return;
    }
    starts += history.starts;
  }
  EXPECT_GT(starts, 1000u);
}

// An endless row of narrow runs: whenever a slot is free, the next one is there.
TEST(ModelTest, AWideRunBehindAnEndlessRowOfNarrowOnesStartsInBoundedTime) {
  // Seconds that a narrow one takes; less than estimates can tell, too.
  for (const auto& [known, length] : {std::pair(false, 100.0), {true, 100.0}, {true, 0.5}}) {
    SCOPED_TRACE(StrCat(length, known ? " s, which is known" : " s, which is unknown"));
    constexpr int kSlots = 4;
    Dice dice(7);
    Snapshot snapshot;
    AddSlots(snapshot, kSlots);
    std::map<std::string, double> ends;
    double now = 0;
    std::optional<double> submitted, started;
    std::string wide;
    for (int number = 0; number < 400 && !started; ++number) {
      // They end one by one, never two at the same time.
      if (!ends.empty()) {
        const auto first = std::ranges::min_element(
            ends, [](const auto& a, const auto& b) { return a.second < b.second; });
        const double passed = first->second - now;
        now = first->second;
        for (auto& [run, holding] : snapshot.holdings) {
          if (holding.remaining_seconds) *holding.remaining_seconds -= passed;
        }
        for (Device& device : snapshot.devices) {
          std::erase_if(device.leases,
                        [&](const Lease& lease) { return lease.run == first->first; });
        }
        snapshot.holdings.erase(first->first);
        ends.erase(first);
      }
      while (snapshot.queue.size() < 3 * kSlots) {
        const int place = number * 20 + static_cast<int>(snapshot.queue.size());
        QueuedRun run = {.id = StrCat("r", 100'000 + place)};
        if (known) run.expected_seconds = length * (50 + dice.Below(50)) / 100;
        snapshot.queue.push_back(run);
      }
      if (number == 40) {
        submitted = now;
        wide = StrCat("r", 100'000 + number * 20 + 19);  // behind all that wait now
        snapshot.queue.push_back({.id = wide, .threads = kSlots});
      }
      const Plan plan = MakePlan(snapshot);
      Apply(plan, snapshot);
      for (const Placement& placement : plan.start) {
        const std::optional<double> expected =
            snapshot.holdings.at(placement.run).remaining_seconds;
        ends[placement.run] = now + expected.value_or(length * (1 + dice.Below(100)) / 100);
        if (placement.run == wide) started = now;
      }
    }
    ASSERT_TRUE(submitted.has_value());
    ASSERT_TRUE(started.has_value());
    // Three times four narrow ones go before it, and then it waits for those that run.
    EXPECT_LE(*started - *submitted, 4 * length);
  }
}

}  // namespace
}  // namespace normlab::scheduler
