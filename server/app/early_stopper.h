// Stops runs of sweeps that do worse than their peers. As points of a run come in it is compared at
// each step of its sweep's rule, once; what came of it is in the database before the run is told.
#ifndef NORMLAB_SERVER_APP_EARLY_STOPPER_H_
#define NORMLAB_SERVER_APP_EARLY_STOPPER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "normlab/v1/experiment_service.pb.h"
#include "server/base/mutex.h"
#include "server/domain/event.h"
#include "server/storage/early_stops.h"
#include "server/storage/store.h"

namespace normlab::app {

// Compares on a thread of its own.
class EarlyStopper {
 public:
  // Ends a run for a reason; FAILED_PRECONDITION when it has ended by itself. May wait.
  using StopRun = std::function<absl::Status(const std::string& run, const std::string& reason)>;
  // `store` must have stopped writing before this goes.
  EarlyStopper(storage::Store& store, StopRun stop_run);
  ~EarlyStopper();

  // Takes up what an earlier server left: sweeps whose runs have not all ended. Runs that were to
  // be stopped and had not been told are told.
  absl::Status Start() ABSL_LOCKS_EXCLUDED(mutex_);
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // A stored experiment with such a rule. Any thread; never waits for the disk.
  void Watch(const v1::Experiment& experiment) ABSL_LOCKS_EXCLUDED(mutex_);

  // What was just committed. Quick: the writer's thread calls it.
  void Note(const std::vector<domain::EventPtr>& events) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct WatchedRun {
    std::string experiment;
    int64_t next_step = 0;  // where it is compared next; 0: not known yet
  };
  // Where a run stands with its rule.
  struct Standing {
    std::string reason;                // it is to be stopped, and has not been told
    std::optional<int64_t> next_step;  // where it is compared next; none: nowhere
    bool is_due = false;               // it has come so far
  };

  void NoteSnapshot(const v1::Run& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NotePoints(const v1::Points& points) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Loop();
  // False: it could not be done for now.
  bool LookAt(const std::string& run) ABSL_LOCKS_EXCLUDED(mutex_);
  static absl::StatusOr<Standing> Find(storage::Database& database, const std::string& run,
                                       const v1::EarlyStop& rule);
  // Compares it wherever it is due, and says where it stands then.
  static absl::StatusOr<Standing> Compare(storage::WriteContext& context, const std::string& run,
                                          const v1::EarlyStop& rule);
  absl::Status TellToStop(const std::string& run, const std::string& reason);

  storage::Store& store_;
  const StopRun stop_run_;
  Mutex mutex_;
  CondVar ready_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, v1::EarlyStop> rules_ ABSL_GUARDED_BY(mutex_);  // by experiment
  std::map<std::string, WatchedRun> runs_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> waiting_ ABSL_GUARDED_BY(mutex_);  // runs to look at
  std::thread thread_;
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_EARLY_STOPPER_H_
