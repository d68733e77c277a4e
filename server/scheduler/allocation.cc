#include "server/scheduler/allocation.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

#include "server/scheduler/fair_share.h"

namespace normlab::scheduler {
namespace {

// No end is known better: a run that should have ended by now may do so any moment, and none passes
// another one because it is expected to take less.
constexpr double kOverdue = 1;  // seconds

size_t ClassOf(int priority) { return priority > 0 ? 0 : priority == 0 ? 1 : 2; }

int64_t GpuBytes(const Machine& machine, const Holder& holder) {
  const auto gpus = std::ranges::count_if(
      holder.devices, [&machine](int device) { return machine.is_gpu(device); });
  return gpus * holder.memory_bytes;
}

}  // namespace

double Account::Share() const {
  return device_seconds + kDeviceAdvance * static_cast<double>(devices);
}

// Where a line stands in a round.
struct Allocation::Turn {
  Line* line = nullptr;
  struct Cursor {
    std::set<int>::const_iterator next = {};
    size_t seen = 0;
    bool closed = false;
  };
  std::vector<Cursor> cursors = {};  // by group
  bool done = false;
};

Allocation::Allocation(const Snapshot& snapshot) : snapshot_(snapshot), machine_(snapshot.devices) {
  AddLeases();
  AddQueue();
}

int Allocation::UserIndex(const std::string& name) {
  const auto [found, added] = account_of_.try_emplace(name, static_cast<int>(accounts_.size()));
  if (!added) return found->second;
  Account account;
  account.name = &found->first;
  if (const auto known = snapshot_.users.find(name); known != snapshot_.users.end()) {
    account.limits = known->second;
    account.device_seconds = known->second.device_seconds;
  }
  accounts_.push_back(account);
  return found->second;
}

int Allocation::DemandIndex(const Demand& demand) {
  const auto [found, added] = demand_index_.try_emplace(demand, static_cast<int>(demands_.size()));
  if (added) {
    demands_.push_back(demand);
    learnt_.emplace_back();
  }
  return found->second;
}

void Allocation::AddLeases() {
  // A run may hold devices while those of its attempt before are not back yet.
  std::map<std::pair<std::string, bool>, Holder> holders;
  for (size_t i = 0; i < snapshot_.devices.size(); ++i) {
    for (const Lease& lease : snapshot_.devices[i].leases) {
      Holder& holder = holders[{lease.run, lease.returning}];
      holder.devices.push_back(static_cast<int>(i));
      holder.run = &lease.run;
      holder.name = &lease.name;
      holder.user = UserIndex(lease.user);
      holder.priority = lease.priority;
      holder.preemptible = lease.preemptible;
      holder.exclusive = lease.exclusive;
      holder.memory_bytes = lease.memory_bytes;
    }
  }
  for (auto& [key, holder] : holders) {
    const auto& [run, returning] = key;
    if (returning) {
      holder.stopping = true;
      holder.end = 0;
    } else if (const auto known = snapshot_.holdings.find(run); known != snapshot_.holdings.end()) {
      const Holding& holding = known->second;
      holder.stopping = holding.stopping;
      holder.since = -holding.held_seconds;
      if (holding.remaining_seconds) holder.end = std::max(kOverdue, *holding.remaining_seconds);
      if (holder.stopping) holder.end = 0;
    }
    Account& account = accounts_[holder.user];
    ++account.running;
    account.devices += static_cast<int64_t>(holder.devices.size());
    account.gpu_memory_bytes += GpuBytes(machine_, holder);
    machine_.Take(std::move(holder));
  }
}

void Allocation::AddQueue() {
  const std::vector<QueuedRun>& queue = snapshot_.queue;
  const size_t size = queue.size();
  user_of_.resize(size);
  demand_of_.resize(size);
  submission_.resize(size);
  rank_place_.resize(size);
  std::vector<int> by_id(size);
  std::iota(by_id.begin(), by_id.end(), 0);
  std::ranges::sort(by_id, [&](int a, int b) { return queue[a].id < queue[b].id; });
  for (size_t i = 0; i < size; ++i) submission_[by_id[i]] = static_cast<int>(i);
  by_rank_ = by_id;
  std::ranges::stable_sort(by_rank_, [&](int a, int b) { return queue[a].rank < queue[b].rank; });
  for (size_t i = 0; i < size; ++i) rank_place_[by_rank_[i]] = static_cast<int>(i);
  for (size_t i = 0; i < size; ++i) {
    const int index = static_cast<int>(i);
    user_of_[i] = UserIndex(queue[i].user);
    demand_of_[i] = DemandIndex(DemandOf(queue[i], snapshot_.devices));
    if (queue[i].held || !queue[i].unmet.empty()) continue;
    if (queue[i].not_before.value_or(0) > 0) {
      not_before_.emplace_back(*queue[i].not_before, index);
    } else {
      Enqueue(index);
    }
  }
  std::ranges::sort(not_before_, std::greater<>());
}

void Allocation::Enqueue(int queued) {
  std::vector<Line>& lines = lines_[ClassOf(snapshot_.queue[queued].priority)];
  const int user = user_of_[queued], demand = demand_of_[queued];
  auto line = std::ranges::find(lines, user, &Line::user);
  if (line == lines.end()) line = lines.insert(lines.end(), Line{.user = user});
  auto group = std::ranges::find(line->groups, demand, &Group::demand);
  if (group == line->groups.end()) {
    Group made = {.demand = demand};
    if (demands_[demand].cpu) {
      Demand cpu = demands_[demand];
      cpu.gpu = false;
      made.cpu_demand = DemandIndex(cpu);
    }
    group = line->groups.insert(line->groups.end(), std::move(made));
  }
  line->oldest.insert(submission_[queued]);
  group->runs.insert(rank_place_[queued]);
  ++waiting_;
}

double Allocation::NextNotBefore() const {
  return not_before_.empty() ? kNever : not_before_.back().first;
}

void Allocation::PassTo(double time) {
  const double seconds = time - now_;
  const double left = UsageLeft(seconds);
  const double used = UsageOfHolding(1, seconds);
  for (Account& account : accounts_) {
    account.device_seconds =
        account.device_seconds * left + used * static_cast<double>(account.devices);
  }
  now_ = time;
  while (!not_before_.empty() && not_before_.back().first <= now_) {
    Enqueue(not_before_.back().second);
    not_before_.pop_back();
  }
}

void Allocation::Release(int index) {
  machine_.Release(index);
  const Holder& holder = machine_.holder(index);
  Account& account = accounts_[holder.user];
  --account.running;
  account.devices -= static_cast<int64_t>(holder.devices.size());
  account.gpu_memory_bytes -= GpuBytes(machine_, holder);
}

// --- a round ---

std::vector<int> Allocation::Round(const Options& options) {
  machine_.DropReservations();
  std::ranges::fill(learnt_, Learnt());
  misses_ = 0;
  std::vector<int> started;
  for (size_t i = 0; i < lines_.size(); ++i) RunClass(i, options, started);
  return started;
}

void Allocation::RunClass(size_t line_class, const Options& options, std::vector<int>& started) {
  std::vector<Turn> turns;
  for (Line& line : lines_[line_class]) {
    Turn turn = {.line = &line};
    for (const Group& group : line.groups) turn.cursors.push_back({group.runs.begin()});
    turns.push_back(std::move(turn));
  }
  while ((options.preempt || machine_.HasRoom()) && misses_ <= options.tries) {
    Turn* first = nullptr;
    const auto key = [this](const Turn& turn) {
      return std::pair(accounts_[turn.line->user].Share(), *turn.line->oldest.begin());
    };
    for (Turn& turn : turns) {
      if (turn.line->oldest.empty()) turn.done = true;
      if (turn.done) continue;
      if (first == nullptr || key(turn) < key(*first)) first = &turn;
    }
    if (first == nullptr) return;
    if (!Consider(*first, options, started)) first->done = true;
  }
}

// Looks at the line's next run; false when there is none to look at.
bool Allocation::Consider(Turn& turn, const Options& options, std::vector<int>& started) {
  Account& account = accounts_[turn.line->user];
  if (account.RunsEnough()) return false;
  size_t chosen = turn.cursors.size();
  for (size_t i = 0; i < turn.cursors.size(); ++i) {
    Turn::Cursor& cursor = turn.cursors[i];
    if (cursor.closed || cursor.next == turn.line->groups[i].runs.end()) continue;
    if (chosen == turn.cursors.size() || *cursor.next < *turn.cursors[chosen].next) chosen = i;
  }
  if (chosen == turn.cursors.size()) return false;
  Turn::Cursor& cursor = turn.cursors[chosen];
  Group& group = turn.line->groups[chosen];
  const int queued = by_rank_[*cursor.next++];
  int demand_index = group.demand;
  if (demands_[demand_index].gpu &&
      !account.MayUse(demands_[demand_index].gpus * demands_[demand_index].memory_bytes)) {
    demand_index = group.cpu_demand;
  }
  if (demand_index < 0 || ++cursor.seen > options.depth) {
    cursor.closed = true;
    return true;
  }
  ++misses_;
  const Demand& demand = demands_[demand_index];
  Learnt& learnt = learnt_[demand_index];
  const double end =
      now_ + std::max(kOverdue, snapshot_.queue[queued].expected_seconds.value_or(kNever));
  if (!learnt.full && !(learnt.blocked && end >= learnt.blocked_end)) {
    std::vector<int> devices = machine_.Find(demand, end, Machine::Reserved::kEndsBy);
    if (!devices.empty()) {
      group.runs.erase(rank_place_[queued]);
      turn.line->oldest.erase(submission_[queued]);
      started.push_back(Place(queued, std::move(devices)));
      misses_ = 0;
      return true;
    }
    learnt.blocked = true;
    learnt.blocked_end = end;
    learnt.full = machine_.Find(demand, end, Machine::Reserved::kIgnored).empty();
  }
  if (!learnt.exhausted) MakeRoom(queued, demand, learnt, options.preempt);
  cursor.closed = learnt.full && learnt.exhausted;
  return true;
}

int Allocation::Place(int queued, std::vector<int> devices) {
  const QueuedRun& run = snapshot_.queue[queued];
  Holder holder;
  holder.queued = queued;
  holder.run = &run.id;
  holder.name = &run.name;
  holder.user = user_of_[queued];
  holder.priority = run.priority;
  holder.exclusive = run.exclusive;
  holder.memory_bytes = machine_.is_gpu(devices.front()) ? run.gpu_memory_bytes : 0;
  holder.since = now_;
  holder.end = now_ + run.expected_seconds.value_or(kNever);
  holder.devices = std::move(devices);
  Account& account = accounts_[holder.user];
  ++account.running;
  account.devices += static_cast<int64_t>(holder.devices.size());
  account.gpu_memory_bytes += GpuBytes(machine_, holder);
  --waiting_;
  return machine_.Take(std::move(holder));
}

// Keeps devices for a run that does not fit: those that pausing others frees now, else those that
// will be free first.
void Allocation::MakeRoom(int queued, const Demand& demand, Learnt& learnt, bool preempt) {
  Machine::Earliest earliest = machine_.FindEarliest(demand, now_);
  if (earliest.devices.empty()) {
    learnt.exhausted = true;
    return;
  }
  if (preempt && earliest.time > now_ && !learnt.no_victims) {
    std::vector<int> devices = Preempt(queued, demand);
    learnt.no_victims = devices.empty();
    if (!devices.empty()) earliest = {now_, std::move(devices)};
  }
  machine_.Reserve(earliest.devices, earliest.time);
}

// The devices that are free once runs of a lower class have been paused, none of which is paused
// without need: those of the highest class, and of these the ones that have run longest, are spared
// first. Empty when that makes no room.
std::vector<int> Allocation::Preempt(int queued, const Demand& demand) {
  const std::vector<Holder>& holders = machine_.holders();
  std::vector<int> candidates;
  Machine::Without without(holders.size(), false);
  for (size_t i = 0; i < holders.size(); ++i) {
    const Holder& holder = holders[i];
    if (holder.gone || holder.queued >= 0) continue;
    if (holder.stopping) {
      without[i] = true;
    } else if (holder.preemptible && holder.priority < snapshot_.queue[queued].priority) {
      without[i] = true;
      candidates.push_back(static_cast<int>(i));
    }
  }
  const auto fits = [&] {
    return machine_.Find(demand, kNever, Machine::Reserved::kKept, without);
  };
  if (candidates.empty() || fits().empty()) return {};
  std::ranges::sort(candidates, [&](int a, int b) {
    return std::tuple(-holders[a].priority, holders[a].since, *holders[a].run) <
           std::tuple(-holders[b].priority, holders[b].since, *holders[b].run);
  });
  for (const int candidate : candidates) {
    without[candidate] = false;
    if (fits().empty()) without[candidate] = true;
  }
  std::vector<int> devices = fits();
  for (const int candidate : candidates) {
    if (!without[candidate]) continue;
    machine_.holder(candidate).stopping = true;
    machine_.holder(candidate).end = now_;
    victims_.push_back({candidate, queued});
  }
  return devices;
}

}  // namespace normlab::scheduler
