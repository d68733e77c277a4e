// Runs attempts as processes of this machine.
//
//   LocalExecutor executor({}, [](const AttemptKey& key, const ExitReport& report) { ... });
//   executor.Launch({.key = {run, 1}, .token = ..., .directory = ..., ...});
//
// The folder of an attempt: token (0600), spool, log, log.1 when the log has grown long, alive (a
// lock that the shepherd holds from its first moment), shepherd.json and, in the end, exit.json.
// Nothing here ends an attempt when the executor or the server goes: the next server adopts it.
//
// An attempt becomes that of a trainer that was started ahead, if there is one, and is started from
// nothing otherwise: see warm_trainers.h and docs/adr/0029-warm-trainers.md.
#ifndef NORMLAB_SERVER_EXECUTOR_LOCAL_EXECUTOR_H_
#define NORMLAB_SERVER_EXECUTOR_LOCAL_EXECUTOR_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/base/mutex.h"
#include "server/base/subprocess.h"
#include "server/executor/executor.h"
#include "server/executor/warm_trainers.h"

namespace normlab::executor {

struct LocalExecutorOptions {
  // Found beside the running program when empty.
  std::filesystem::path shepherd_path = {};
  std::filesystem::path trainer_path = {};
  uint64_t spool_bytes = 8 << 20;
  // When somebody else than Terminate sends the shepherd a SIGTERM.
  std::chrono::milliseconds default_grace = std::chrono::seconds(30);
  // For a shepherd to say who it is.
  std::chrono::milliseconds introduction = std::chrono::seconds(5);
  // Of the trainer's log; what is older is kept once more, in log.1.
  int64_t log_bytes = 16 << 20;
  // Trainers that wait, loaded, for attempts.
  int warm_trainers = 0;
  // So long after an attempt began the next of them is loaded.
  std::chrono::milliseconds warm_after = std::chrono::seconds(1);
  // For one of them to prepare its attempt's folder; after that another is started in its place.
  std::chrono::milliseconds hand_over = std::chrono::seconds(2);
};

class LocalExecutor : public Executor {
 public:
  LocalExecutor(LocalExecutorOptions options, ExitCallback on_exit);
  // Ends the reports. Not to be called from a report.
  ~LocalExecutor() override;

  absl::StatusOr<ProcessIdentity> Launch(const LaunchRequest& request) override;
  absl::Status Adopt(const AttemptKey& key, const ProcessIdentity& shepherd,
                     const std::filesystem::path& directory) override;
  std::optional<ProcessIdentity> FindShepherd(const std::filesystem::path& directory) override;
  void Terminate(const AttemptKey& key, std::chrono::milliseconds grace) override;

  // Trainers that wait, loaded.
  int WarmCount() const { return warm_ ? warm_->Loaded() : 0; }

 private:
  struct Attempt {
    std::filesystem::path directory;
    UniqueFd shepherd;  // none once it is dead
  };

  absl::Status Prepare(const LaunchRequest& request) const;
  absl::StatusOr<ProcessIdentity> Start(const LaunchRequest& request);
  // Nothing when there is none to be used, and none has begun.
  std::optional<absl::StatusOr<ProcessIdentity>> StartWarm(
      const LaunchRequest& request, const std::vector<std::string>& arguments,
      const UniqueFd& lock);
  absl::StatusOr<ProcessIdentity> WatchChild(const LaunchRequest& request, pid_t shepherd);
  absl::Status Watch(const AttemptKey& key, Attempt attempt);
  bool IsWatched(const AttemptKey& key);
  void WatchLoop();
  bool Stopping();
  // True while a lost attempt's processes are still being killed: look again soon.
  bool ReportEnded();
  std::vector<std::pair<AttemptKey, std::filesystem::path>> TakeEnded();

  LocalExecutorOptions options_;
  const ExitCallback on_exit_;
  UniqueFd epoll_;
  UniqueFd wake_;
  std::unique_ptr<WarmTrainers> warm_;  // set by the constructor; none when none are wanted

  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<AttemptKey, Attempt> attempts_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last: it uses the rest
};

}  // namespace normlab::executor

#endif  // NORMLAB_SERVER_EXECUTOR_LOCAL_EXECUTOR_H_
