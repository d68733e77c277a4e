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
#include "server/domain/actor.h"
#include "server/executor/executor.h"
#include "server/scheduler/device_board.h"
#include "server/scheduler/plan.h"
#include "server/storage/run_control.h"
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
    // For a trainer that the server stops, not a person, to write its checkpoint.
    std::chrono::milliseconds checkpoint_grace = std::chrono::seconds(60);
    const Clock* clock = nullptr;
    const ProgressBoard* progress = nullptr;  // of runs that train; may be null
  };
  Dispatcher(storage::Store& store, Options options);
  ~Dispatcher();

  // Takes over what an earlier server left, then begins to start runs. Living trainers go on; a
  // trainer that ended meanwhile is ended by what its shepherd noted; an attempt that was never
  // launched is queued again, and one that was interrupted by the run's on_interrupt.
  absl::Status Start();
  // Starts nothing more, has every run that trains write a checkpoint and go back into the queue,
  // and returns how many still have processes. To be called again until there are none. Any thread.
  absl::StatusOr<size_t> StopRuns() ABSL_LOCKS_EXCLUDED(mutex_);
  // Starts nothing more and leaves running trainers to the next server.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Something may be startable. Any thread.
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);

  // Who waits, for what, and how long. Any thread.
  RunQueue& queue() { return queue_; }

  // In run_requests.cc. Each notes in the audit who asked, and waits for the commit; NOT_FOUND when
  // there is no such run, FAILED_PRECONDITION with a sentence when it is not in a state for that.
  // Any thread.

  // Ends a run. Its trainer is killed if it takes longer than cancel_grace.
  absl::Status Cancel(const std::string& run, const domain::Actor& who);
  // In experiment_requests.cc. Ends every run of an experiment that has not ended, all in one
  // transaction. PERMISSION_DENIED, and nothing is ended, when one of these runs, or the
  // experiment, is not the user's; `everybodys` allows it. NOT_FOUND when there is no such
  // experiment.
  absl::Status CancelExperiment(const std::string& experiment, const domain::Actor& who,
                                bool everybodys);
  // Makes a run give its device back. A trainer writes a checkpoint after its present step and
  // ends; it may take as long as it needs. Asking again changes nothing.
  absl::Status Pause(const std::string& run, const domain::Actor& who);
  // Queues a paused run again, at its old place. Its next attempt goes on from the latest
  // checkpoint.
  absl::Status Resume(const std::string& run, const domain::Actor& who);
  // Queues an ended run again, but not one that succeeded, at its old place. Its next attempt goes
  // on from the latest checkpoint, or, `from_start`, afresh.
  absl::Status Retry(const std::string& run, const domain::Actor& who, bool from_start);
  // In run_stops.cc, likewise; what the server does by itself.

  // Makes a run give its devices to the run `by`: as a pause, but it goes back into the queue, at
  // its old place. FAILED_PRECONDITION unless it is preemptible and STARTING or RUNNING.
  absl::Status Preempt(const std::string& run, const std::string& by);
  // Ends a run that does worse than its peers. It is CANCELLED, with that reason.
  absl::Status StopEarly(const std::string& run, const std::string& reason);
  // Ends the attempt of a run that holds more than its budget of a GPU's memory, which counts as a
  // fault of its own, or whose GPU is lost, which counts as an interruption. Asking again changes
  // nothing.
  void EndForTrouble(scheduler::DeviceBoard::Trouble trouble) ABSL_LOCKS_EXCLUDED(mutex_);

  // Has a RUNNING run measured before its next step. Nobody remembers it but the audit, once the
  // trainer was told; a trainer that is not connected is FAILED_PRECONDITION.
  absl::Status Probe(const std::string& run, const domain::Actor& who);

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
  bool StartsNothing() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<v1::Run>> ReadActive();
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
                             storage::AttemptRow& attempt, std::optional<double>& seconds_left);
  void Launch(const storage::AttemptRow& attempt, const std::string& token, int64_t threads);
  void FailStart(const storage::AttemptRow& attempt, const absl::Status& status);

  // In run_requests.cc:
  using RunChange = std::function<absl::Status(v1::Run&, storage::RunControl&)>;
  // Changes a run's state, which `who` asked for by `action`; `attempt` is then its latest one if
  // the run is active, else untouched. What changes nothing, or has no action, is not in the audit.
  absl::Status Change(const std::string& run, const domain::Actor& who, std::string_view action,
                      const RunChange& change, storage::AttemptRow& attempt);
  void EndProcesses(const storage::AttemptRow& attempt);
  // The trainer of an attempt, or one that hears nothing while none is attached.
  Trainer TrainerOf(const storage::AttemptRow& attempt) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Attached> Welcome(storage::Database& database, const std::string& run,
                                   int32_t number, const std::string& token,
                                   v1::Run::State& state) const;

  // In run_stops.cc:
  // Has a run's trainer write a checkpoint and end. It is ended if that takes too long.
  absl::Status StopWithCheckpoint(const std::string& run, storage::StopCause cause,
                                  const std::string& detail);
  // When something is to be done about a living attempt.
  struct Timers {
    std::optional<std::chrono::steady_clock::time_point> time_out = {};  // its time_limit is over
    std::optional<std::chrono::steady_clock::time_point> end = {};  // the grace for a checkpoint is
    bool being_ended = false;  // for a trouble; nothing more is to be done about it
  };
  // Ends an attempt's run after so many seconds.
  void WatchTime(const storage::AttemptRow& attempt, double seconds_left)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveGrace(const storage::AttemptRow& attempt) ABSL_LOCKS_EXCLUDED(mutex_);
  void TakeGraceBack(const storage::AttemptRow& attempt) ABSL_LOCKS_EXCLUDED(mutex_);
  void ForgetTimers(const executor::AttemptKey& attempt) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsBeingEnded(const executor::AttemptKey& attempt) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Does whatever is due.
  void EndOverdue() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndTroubled() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndOne(const scheduler::DeviceBoard::Trouble& trouble) ABSL_LOCKS_EXCLUDED(mutex_);

  // Runs wait before they are tried again, as the database says.
  void ReadHeldBack();
  bool IsHeldBack(const std::string& run) const;
  // How long nothing needs to be looked at, if nothing happens. Absent: for ever.
  std::optional<std::chrono::milliseconds> IdleTime(bool has_exits) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // In attempt_ends.cc:
  static bool WorthRetrying(const absl::Status& status);
  absl::Status Finish(const Exit& exit);
  // A run that is not started before a time. It is stored by the wall clock, and measured by one that
  // nobody sets.
  struct HeldBack {
    int64_t not_before = 0;  // microseconds UTC
    std::chrono::steady_clock::time_point until;
  };
  // What Finish writes. Returns what became of the run.
  struct Ended {
    v1::Run::State state = v1::Run::STATE_UNSPECIFIED;
    std::string reason = {};
    std::optional<HeldBack> held_back = {};
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
  std::map<executor::AttemptKey, Timers> timers_ ABSL_GUARDED_BY(mutex_);
  std::vector<scheduler::DeviceBoard::Trouble> troubles_ ABSL_GUARDED_BY(mutex_);
  bool work_ ABSL_GUARDED_BY(mutex_) = true;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool starts_nothing_ ABSL_GUARDED_BY(mutex_) = false;
  // Dispatcher's thread only:
  std::map<std::string, std::string> wait_reasons_;  // as last written
  bool start_again_ = false;                         // something could not be started for now,
  std::chrono::steady_clock::time_point start_not_before_{};  // and is not tried again before this
  bool note_again_ = false;  // reasons may have changed that are not yet written,
  std::chrono::steady_clock::time_point note_not_before_{};  // and are not before this
  // By run. What the server before this one stored is measured when it is first seen.
  std::map<std::string, HeldBack> held_back_;
  std::thread thread_;
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_DISPATCHER_H_
