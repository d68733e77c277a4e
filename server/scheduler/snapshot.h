// All that decides which run starts where: runs that wait, devices with who holds them, users.
// Times are seconds from the moment at which the snapshot was taken.
#ifndef NORMLAB_SERVER_SCHEDULER_SNAPSHOT_H_
#define NORMLAB_SERVER_SCHEDULER_SNAPSHOT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/scheduler/device.h"

namespace normlab::scheduler {

struct QueuedRun {
  std::string id;  // in the order of submission
  std::string name = {};
  std::string user = {};
  int priority = 0;              // class: 1, 0, -1 (domain/priority.h)
  int64_t rank = 0;              // among the user's own runs of the class; the smaller goes first
  std::string device = "auto";   // auto, cpu, gpu or a device id
  int64_t threads = 1;           // CPU slots, on CPUs
  int64_t gpus = 1;              // GPUs, on GPUs
  int64_t gpu_memory_bytes = 0;  // of each GPU
  bool exclusive = false;
  bool preemptible = false;
  bool held = false;
  std::string unmet = {};                       // name of a run that must have ended first
  std::optional<double> not_before = {};        // does not start earlier
  std::optional<double> expected_seconds = {};  // that it will hold its devices; absent: unknown
};

// What is known of a run that holds devices, beside its leases.
struct Holding {
  double held_seconds = 0;                       // since when it has had them
  std::optional<double> remaining_seconds = {};  // absent: unknown
  bool stopping = false;                         // it has been told to give them back
};

struct UserState {
  double device_seconds = 0;         // used lately (fair_share.h)
  int64_t max_running = 0;           // runs that may hold devices; 0: any number
  int64_t max_gpu_memory_bytes = 0;  // that they may use together; 0: any amount
};

struct Snapshot {
  std::vector<QueuedRun> queue = {};  // in any order
  std::vector<Device> devices = {};
  std::map<std::string, Holding> holdings = {};  // by run
  std::map<std::string, UserState> users = {};   // by name; one that is missing has used nothing
};

}  // namespace normlab::scheduler

#endif  // NORMLAB_SERVER_SCHEDULER_SNAPSHOT_H_
