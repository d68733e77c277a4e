// The queue as people and the dispatcher see it: what the scheduler's pure functions are given, and
// what they answer. Keeps in memory what users have used lately and how long steps take.
// Thread-safe.
#ifndef NORMLAB_SERVER_APP_RUN_QUEUE_H_
#define NORMLAB_SERVER_APP_RUN_QUEUE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "normlab/v1/device_service.pb.h"
#include "normlab/v1/run.pb.h"
#include "server/app/progress_board.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/scheduler/device_board.h"
#include "server/scheduler/fair_share.h"
#include "server/scheduler/forecast.h"
#include "server/scheduler/plan.h"
#include "server/scheduler/step_times.h"
#include "server/storage/queue.h"
#include "server/storage/store.h"

namespace normlab::app {

class RunQueue {
 public:
  // `progress` may be null: then only runs that have ended say how long steps take.
  RunQueue(storage::Store& store, const scheduler::DeviceBoard& devices,
           const ProgressBoard* progress, const Clock& clock)
      : store_(store), devices_(devices), progress_(progress), clock_(clock) {}

  // Adds up what was used before this server started.
  absl::Status Load() ABSL_LOCKS_EXCLUDED(mutex_);

  // Who starts now. Does not read the queue when nobody can. Runs that `leave_out` says so of are
  // left out.
  absl::StatusOr<scheduler::Plan> MakePlan(const std::function<bool(const std::string&)>& leave_out)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Runs have taken devices or returned some: from now on they count as used, or no longer.
  void FollowLeases() ABSL_LOCKS_EXCLUDED(mutex_);

  // Something has changed: what was expected before may be wrong.
  void NoteChange() { ++changes_; }

  // What was expected of the queue at one moment.
  struct Expected {
    scheduler::Snapshot snapshot;
    std::vector<scheduler::Waiting> waiting;  // in the order in which they are to start
    std::map<std::string, size_t> place;      // in `waiting`, by run
    std::map<std::string, storage::QueuedRow> rows;
    int64_t wall_micros = 0;  // when it was made
  };
  using ExpectedPtr = std::shared_ptr<const Expected>;
  // Made anew when something has changed since, but not so often that it takes more than a small
  // part of a core.
  // `latest`: as it is now, whatever that takes.
  absl::StatusOr<ExpectedPtr> Expect(bool latest = false) ABSL_LOCKS_EXCLUDED(mutex_);

  // Who starts first and what these wait for, as it is now; then those that do not start by
  // themselves.
  absl::StatusOr<std::vector<scheduler::Waiting>> First(size_t starts) ABSL_LOCKS_EXCLUDED(mutex_);

  // Tells a queued run's place, what it waits for and when it is expected to start.
  void Complete(v1::Run& run) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::Queue> Describe(size_t entries) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::StatusOr<scheduler::Snapshot> TakeSnapshot(bool all,
                                                   std::map<std::string, storage::QueuedRow>* rows)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteSpeeds(const std::vector<storage::UsedRow>& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FollowLeases(const std::vector<scheduler::Device>& devices)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddHoldings(const std::vector<storage::ActiveRow>& active, scheduler::Snapshot& snapshot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  scheduler::QueuedRun QueuedOf(const storage::QueuedRow& row, bool gpus, int64_t now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double Seconds() const;

  storage::Store& store_;
  const scheduler::DeviceBoard& devices_;
  const ProgressBoard* const progress_;
  const Clock& clock_;

  Mutex mutex_;
  scheduler::UsageLedger ledger_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, double> holding_since_ ABSL_GUARDED_BY(mutex_);  // by run
  scheduler::StepTimes step_times_ ABSL_GUARDED_BY(mutex_);
  // Wall time: attempts that ended before are known, and of those that ended then, these.
  int64_t followed_until_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<int64_t> followed_at_it_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> changes_ = 0;

  Mutex expecting_;  // one thread at a time makes it
  ExpectedPtr expected_ ABSL_GUARDED_BY(expecting_);
  uint64_t expected_changes_ ABSL_GUARDED_BY(expecting_) = 0;
  std::chrono::steady_clock::time_point expected_at_ ABSL_GUARDED_BY(expecting_);
  std::chrono::steady_clock::duration expected_cost_ ABSL_GUARDED_BY(expecting_){};
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_RUN_QUEUE_H_
