// The life of runs: starts queued ones on free devices, takes in what their trainers report, ends
// them. One thread of its own decides; everything it decides is in the database before it happens.
//
// A lease is held from the start of an attempt until all of its processes are gone and its spool is
// read out.
#ifndef NORMLAB_SERVER_APP_DISPATCHER_H_
#define NORMLAB_SERVER_APP_DISPATCHER_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "normlab/worker/v1/worker.pb.h"
#include "server/app/progress_board.h"
#include "server/app/run_files.h"
#include "server/app/run_queue.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/executor/executor.h"
#include "server/scheduler/device_board.h"
#include "server/scheduler/plan.h"
#include "server/storage/store.h"

namespace normlab::app {

class Dispatcher {
 public:
  using MakeExecutor =
      std::function<std::unique_ptr<executor::Executor>(executor::Executor::ExitCallback)>;
  struct Options {
    std::filesystem::path data_dir;
    const RunFiles* files = nullptr;
    scheduler::DeviceBoard* devices = nullptr;
    MakeExecutor make_executor;
    std::chrono::milliseconds cancel_grace = std::chrono::seconds(10);
    const Clock* clock = nullptr;
    const ProgressBoard* progress = nullptr;  // of runs that train; may be null
  };
  Dispatcher(storage::Store& store, Options options);
  ~Dispatcher();

  // Takes over what an earlier server left, then begins to start runs. Living trainers go on; a
  // trainer that ended meanwhile is ended by what its shepherd noted; an attempt that was never
  // launched is queued again, and one that was interrupted by the run's on_interrupt.
  absl::Status Start();
  // Starts nothing more and leaves running trainers to the next server.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Something may be startable. Any thread.
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);

  // Who waits, for what, and how long. Any thread.
  RunQueue& queue() { return queue_; }

  // In run_requests.cc. Each waits for the commit; NOT_FOUND when there is no such run,
  // FAILED_PRECONDITION with a sentence when it is not in a state for that. Any thread.

  // Ends a run. Its trainer is killed if it takes longer than cancel_grace.
  absl::Status Cancel(const std::string& run, const std::string& user);
  // Makes a run give its device back. A trainer writes a checkpoint after its present step and
  // ends; it may take as long as it needs. Asking again changes nothing.
  absl::Status Pause(const std::string& run, const std::string& user);
  // Queues a paused run again, at its old place. Its next attempt goes on from the latest
  // checkpoint.
  absl::Status Resume(const std::string& run, const std::string& user);
  // Queues an ended run again, but not one that succeeded, at its old place. Its next attempt goes
  // on from the latest checkpoint, or, `from_start`, afresh.
  absl::Status Retry(const std::string& run, const std::string& user, bool from_start);
  // Has a RUNNING run measured before its next step. Writes nothing, and nobody remembers it: a
  // trainer that is not connected is FAILED_PRECONDITION.
  absl::Status Probe(const std::string& run, const std::string& user);

  // --- trainers ---

  // What a trainer can be told; called from any thread, any number of times. By itself, one that
  // hears nothing.
  struct Trainer {
    std::function<void()> stop = [] {};
    std::function<void()> pause = [] {};
    std::function<bool()> probe = [] { return false; };  // false: it is not there to hear it
  };
  struct Attached {
    int64_t attempt_id = 0;
    worker::v1::Assignment assignment;
  };
  // A trainer says who it is. PERMISSION_DENIED unless this is the living attempt of the run with
  // its token. `trainer` is told (perhaps before this returns) what is wanted of it; a later Attach
  // of the same attempt takes the place of this one. Writes only the first time: a trainer whose
  // server has no disk space left is still let in, and waits.
  absl::StatusOr<Attached> Attach(const std::string& run, int32_t number, const std::string& token,
                                  Trainer trainer) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Exit {
    executor::AttemptKey key;
    executor::ExitReport report = {};
    // Nothing was started. Not empty: the run waits again, for this reason.
    std::string put_back = {};
    bool never_started = false;
  };

  void Loop();
  bool WaitForWork(std::deque<Exit>& exits);
  // In queue_rounds.cc: what becomes of the runs that wait.
  void StartQueued();
  // Makes a run give its devices to another one.
  void MakeWay(const scheduler::Preemption& preemption);
  bool HasDiskSpace(std::string& reason) const;
  void TryStartingLater();
  void NoteWaiting();
  void StoreReasons(const std::map<std::string, std::string>& reasons);

  void StartOne(const scheduler::Placement& placement);
  absl::Status CreateAttempt(const scheduler::Placement& placement, const std::string& token,
                             storage::AttemptRow& attempt);
  void Launch(const storage::AttemptRow& attempt, const std::string& token, int64_t threads);
  void FailStart(const storage::AttemptRow& attempt, const absl::Status& status);

  // In run_requests.cc:
  // Changes a run's state; `attempt` is then its latest one if the run is active, else untouched.
  absl::Status Change(const std::string& run, const std::function<absl::Status(v1::Run&)>& change,
                      storage::AttemptRow& attempt);
  // The trainer of an attempt, or one that hears nothing while none is attached.
  Trainer TrainerOf(const storage::AttemptRow& attempt) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Attached> Welcome(storage::Database& database, const std::string& run,
                                   int32_t number, const std::string& token,
                                   v1::Run::State& state) const;

  // Runs that were interrupted wait before they are tried again.
  void HoldBack(const std::string& run, std::chrono::steady_clock::time_point until);
  absl::Status HoldBackInterrupted();
  bool IsHeldBack(const std::string& run) const;
  // How long nothing needs to be looked at, if nothing happens. Absent: for ever.
  std::optional<std::chrono::milliseconds> IdleTime(bool has_exits) const;

  // In attempt_ends.cc:
  static bool WorthRetrying(const absl::Status& status);
  absl::Status Finish(const Exit& exit);
  // What Finish writes. Returns what became of the run.
  struct Ended {
    v1::Run::State state = v1::Run::STATE_UNSPECIFIED;
    std::string reason = {};
    std::chrono::seconds pause{0};  // before it is tried again
  };
  absl::StatusOr<Ended> WriteEnd(storage::WriteContext& context, const Exit& exit,
                                 const std::string& spool_fault);
  // Of attempts whose end is stored: a server that died just then left them.
  void DropLeftoverSpools();
  void DropSpool(const storage::AttemptRow& attempt, bool readable) const;
  std::string ReadOutSpool(const storage::AttemptRow& attempt, absl::Status& status);
  absl::Status RecoverOne(const v1::Run& run);
  absl::Status Requeue(const storage::AttemptRow& attempt, const std::string& wait_reason);
  std::filesystem::path DirectoryOf(const storage::AttemptRow& attempt) const {
    return options_.data_dir / attempt.directory;
  }

  storage::Store& store_;
  const Options options_;
  RunQueue queue_;
  std::unique_ptr<executor::Executor> executor_;

  mutable Mutex mutex_;
  CondVar ready_;
  std::deque<Exit> exits_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Trainer> trainers_ ABSL_GUARDED_BY(mutex_);  // by attempt id
  bool work_ ABSL_GUARDED_BY(mutex_) = true;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Dispatcher's thread only:
  std::map<std::string, std::string> wait_reasons_;  // as last written
  bool start_again_ = false;                         // something could not be started for now,
  std::chrono::steady_clock::time_point start_not_before_{};  // and is not tried again before this
  bool note_again_ = false;  // reasons may have changed that are not yet written,
  std::chrono::steady_clock::time_point note_not_before_{};  // and are not before this
  std::map<std::string, std::chrono::steady_clock::time_point> held_back_;  // by run, until when
  std::thread thread_;
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_DISPATCHER_H_
