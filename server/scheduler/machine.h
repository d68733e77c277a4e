// The devices while a plan is made: who holds them and until when, and what is kept free on them
// for a run that needs more than is free now. Not thread-safe.
#ifndef NORMLAB_SERVER_SCHEDULER_MACHINE_H_
#define NORMLAB_SERVER_SCHEDULER_MACHINE_H_

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "server/scheduler/snapshot.h"

namespace normlab::scheduler {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

// What a run asks of the devices. Runs that ask for the same wait for the same.
struct Demand {
  bool cpu = false;  // a CPU will do
  bool gpu = false;  // a GPU will do, and is preferred
  int only = -1;     // index of the one device that will do; -1: any of the kind
  int64_t threads = 1;
  int64_t gpus = 1;
  int64_t memory_bytes = 0;  // of each GPU
  bool exclusive = false;
  auto operator<=>(const Demand&) const = default;
};
Demand DemandOf(const QueuedRun& run, const std::vector<Device>& devices);

// A run that holds devices, or will while the future is played through.
struct Holder {
  int queued = -1;  // its index in the snapshot's queue; -1 for one that held its devices already
  const std::string* run = nullptr;  // of the snapshot
  const std::string* name = nullptr;
  int user = 0;
  int priority = 0;
  bool preemptible = false;
  bool exclusive = false;
  bool stopping = false;
  int64_t memory_bytes = 0;
  double since = 0;
  double end = kNever;  // expected
  std::vector<int> devices = {};
  bool gone = false;
};

class Machine {
 public:
  explicit Machine(const std::vector<Device>& devices);

  // `holder.devices` are taken. Returns its index.
  int Take(Holder holder);
  void Release(int holder);
  Holder& holder(int index) { return holders_[index]; }
  const std::vector<Holder>& holders() const { return holders_; }

  // Some device takes more runs as it is.
  bool HasRoom() const;

  // Holders to be left out of account, by index.
  using Without = std::vector<bool>;
  enum class Reserved {
    kKept,     // devices that are reserved are left alone
    kEndsBy,   // they may be used by who ends before they are needed
    kIgnored,  // as if nothing were
  };
  // Devices for one who will end at `end`, GPUs first; empty when it does not fit.
  std::vector<int> Find(const Demand& demand, double end, Reserved reserved,
                        const Without& without = {}) const;

  // The devices that will be free first, of those that are not reserved, and when.
  struct Earliest {
    double time = kNever;
    std::vector<int> devices = {};  // empty: there are not so many
  };
  Earliest FindEarliest(const Demand& demand, double now) const;
  // Keeps the devices for a run that is to start at `time`.
  void Reserve(const std::vector<int>& devices, double time);
  void DropReservations();

  bool is_gpu(int device) const { return slots_[device].gpu; }
  // The one who left a device last, while the future is played through; -1 before anybody has.
  int last_holder(int device) const { return slots_[device].last_holder; }

 private:
  struct Slot {
    bool usable = false;
    bool gpu = false;
    int64_t room_bytes = 0;  // of a GPU's memory, for runs of this server
    std::vector<int> holders = {};
    std::optional<double> reserved = {};  // is needed from then on
    int last_holder = -1;
  };
  bool Suits(int device, const Demand& demand, bool gpu) const;
  // `gone` says of each holder of the slot whether it is left out of account.
  template <typename Gone>
  bool IsFree(const Slot& slot, const Demand& demand, const Gone& gone) const;
  int64_t FreeBytes(const Slot& slot) const;
  std::vector<int> FindOfKind(const Demand& demand, bool gpu, double end, Reserved reserved,
                              const Without& without) const;
  double FreeFrom(const Slot& slot, const Demand& demand, double now) const;
  Earliest EarliestOfKind(const Demand& demand, bool gpu, double now) const;

  std::vector<Slot> slots_;
  std::vector<Holder> holders_;
};

}  // namespace normlab::scheduler

#endif  // NORMLAB_SERVER_SCHEDULER_MACHINE_H_
