// The order of the queue and who starts, round by round. One round is what a plan is made of; many,
// with time passing between them, are a forecast.
//
// A round looks at the runs class by class; within a class at the next run of the user with the
// least share (then: whose oldest run was submitted first); a user's own by rank, then id. Each is
// placed on free devices, or, if it does not fit, keeps those for itself that will be free first:
// who comes later may use them only if expected to have ended by then. Nothing is known to end that
// has no expected end. Not thread-safe.
#ifndef NORMLAB_SERVER_SCHEDULER_ALLOCATION_H_
#define NORMLAB_SERVER_SCHEDULER_ALLOCATION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/scheduler/machine.h"
#include "server/scheduler/snapshot.h"

namespace normlab::scheduler {

struct Account {
  const std::string* name = nullptr;
  double device_seconds = 0;
  int64_t devices = 0;  // held now
  int64_t running = 0;  // runs that hold some
  int64_t gpu_memory_bytes = 0;
  UserState limits = {};
  double Share() const;
  bool RunsEnough() const { return limits.max_running > 0 && running >= limits.max_running; }
  bool MayUse(int64_t more_bytes) const {
    return limits.max_gpu_memory_bytes == 0 ||
           gpu_memory_bytes + more_bytes <= limits.max_gpu_memory_bytes;
  }
};

// A running run to be paused, and the queued one that it makes room for (index in the queue).
struct Victim {
  int holder = 0;
  int queued = 0;
};

class Allocation {
 public:
  // `snapshot` must outlive it.
  explicit Allocation(const Snapshot& snapshot);

  struct Options {
    bool preempt = false;
    size_t depth = SIZE_MAX;  // runs of a user that ask for the same, looked at in a round
    size_t tries = SIZE_MAX;  // runs looked at in a row that do not start: then the round is over
  };
  // Starts what may start; their holders are returned. Reservations are made anew.
  std::vector<int> Round(const Options& options);
  // Whom the rounds so far have chosen to be paused.
  const std::vector<Victim>& victims() const { return victims_; }

  // Lets time pass, to `time`.
  void PassTo(double time);
  void Release(int holder);

  double now() const { return now_; }
  Machine& machine() { return machine_; }
  const Machine& machine() const { return machine_; }
  const Account& account(int user) const { return accounts_[user]; }
  const Demand& demand(int queued) const { return demands_[demand_of_[queued]]; }
  int user(int queued) const { return user_of_[queued]; }
  // When the next run becomes startable that is not yet; kNever if there is none.
  double NextNotBefore() const;
  bool HasWaiting() const { return waiting_ > 0; }  // runs that could start now, by themselves

 private:
  // A user's waiting runs of one class that ask for the same, by rank and id.
  struct Group {
    int demand = 0;
    int cpu_demand = -1;      // the same without GPUs; -1 when a CPU will not do
    std::set<int> runs = {};  // places in by_rank_
  };
  struct Line {
    int user = 0;
    std::set<int> oldest = {};  // places in the order of submission
    std::vector<Group> groups = {};
  };
  // What a round has learnt of a demand.
  struct Learnt {
    double blocked_end = kNever;  // who ends then or later does not fit
    bool blocked = false;
    bool full = false;        // nobody fits, whenever it ends
    bool exhausted = false;   // no devices are left to be reserved for it
    bool no_victims = false;  // pausing others makes no room
  };
  struct Turn;  // a line's place in a round

  int UserIndex(const std::string& name);
  int DemandIndex(const Demand& demand);
  void AddLeases();
  void AddQueue();
  void Enqueue(int queued);
  void RunClass(size_t line_class, const Options& options, std::vector<int>& started);
  bool Consider(Turn& turn, const Options& options, std::vector<int>& started);
  int Place(int queued, std::vector<int> devices);
  void MakeRoom(int queued, const Demand& demand, Learnt& learnt, bool preempt);
  std::vector<int> Preempt(int queued, const Demand& demand);

  const Snapshot& snapshot_;
  double now_ = 0;
  Machine machine_;
  std::vector<Account> accounts_;
  std::map<std::string, int> account_of_;
  std::vector<Demand> demands_;
  std::map<Demand, int> demand_index_;
  // By index in the queue:
  std::vector<int> user_of_, demand_of_, submission_, rank_place_;
  std::vector<int> by_rank_;                        // queue indices
  std::vector<std::pair<double, int>> not_before_;  // latest first
  std::array<std::vector<Line>, 3> lines_;          // high, normal, low
  size_t waiting_ = 0;
  size_t misses_ = 0;  // runs looked at since the last one that started
  std::vector<Learnt> learnt_;  // by demand
  std::vector<Victim> victims_;
};

}  // namespace normlab::scheduler

#endif  // NORMLAB_SERVER_SCHEDULER_ALLOCATION_H_
