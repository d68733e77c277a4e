// Trainers that are started ahead of their attempts, each under its shepherd, so that a run does
// not wait for LibTorch to be loaded.
//
//   WarmTrainers warm({.count = 1, .arguments = ..., .environment = ..., .programs = ...});
//   if (std::optional<WarmTrainer> one = warm.Take()) ...  // loaded; told by HandOver what it is
//
// While they wait they compute nothing, hold no device, and are no part of any run. They end when
// the line to them closes: with this object, and with the server, however that ends.
#ifndef NORMLAB_SERVER_EXECUTOR_WARM_TRAINERS_H_
#define NORMLAB_SERVER_EXECUTOR_WARM_TRAINERS_H_

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/mutex.h"
#include "server/base/subprocess.h"

namespace normlab::executor {

struct WarmTrainer {
  ProcessIdentity shepherd;
  UniqueFd process;  // the shepherd's
  UniqueFd line;     // to it: see shepherd_warm.h
};

struct WarmTrainersOptions {
  int count = 0;  // that wait at a time
  std::vector<std::string> arguments = {};
  std::function<std::vector<std::string>()> environment = {};
  std::vector<std::filesystem::path> programs = {};  // when one of them changes, all are replaced
  // So long after an attempt began another is loaded: its first steps have the processor until
  // then.
  std::chrono::milliseconds quiet = std::chrono::seconds(1);
  // After one could not be loaded, doubled with each in a row up to the second.
  std::chrono::milliseconds first_pause = std::chrono::seconds(1);
  std::chrono::milliseconds longest_pause = std::chrono::minutes(5);
  std::chrono::milliseconds loading = std::chrono::minutes(1);  // at most
  std::chrono::milliseconds look_at_programs = std::chrono::seconds(10);
};

// Any thread may call; processes are started and waited for on a thread of its own.
class WarmTrainers {
 public:
  explicit WarmTrainers(WarmTrainersOptions options);
  // Ends those that wait, and returns when they are gone.
  ~WarmTrainers();

  // One that has loaded the programs as they are now, or none. It is the caller's.
  std::optional<WarmTrainer> Take();
  // Kills one that was taken and could not be used.
  void Discard(WarmTrainer trainer);
  // An attempt begins.
  void Defer();
  // How many could be taken.
  int Loaded();

 private:
  using Clock = std::chrono::steady_clock;

  struct Entry {
    WarmTrainer trainer;
    Clock::time_point started;
    std::string fingerprint;  // of the programs it has loaded
    bool loaded = false;
  };

  void Loop();
  void EndAll();
  bool Stopping();
  // Until when there is nothing to do but to listen.
  Clock::time_point NextTurn();
  void Listen(Clock::time_point until);
  void HearEach();
  // What an entry has said. False when it is to go.
  bool Hear(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LetGo(std::vector<Entry>::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteFailure(const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropStale();
  bool WantsMore();
  void StartOne();
  absl::StatusOr<WarmTrainer> Spawn() const;
  std::string Fingerprint() const;
  void WaitForEnded();

  const WarmTrainersOptions options_;
  UniqueFd wake_;

  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::vector<WarmTrainer> ending_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point not_before_ ABSL_GUARDED_BY(mutex_);
  std::chrono::milliseconds pause_ ABSL_GUARDED_BY(mutex_) = {};  // 0: the latest one was loaded

  std::thread thread_;  // last: it uses the rest
};

}  // namespace normlab::executor

#endif  // NORMLAB_SERVER_EXECUTOR_WARM_TRAINERS_H_
