// What is wrong with the server just now, in sentences that also say what to do: for /healthz,
// `normlab doctor`, and everybody who watches.
#ifndef NORMLAB_SERVER_APP_PROBLEMS_H_
#define NORMLAB_SERVER_APP_PROBLEMS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "server/app/api.h"
#include "server/base/mutex.h"
#include "server/storage/store.h"

namespace normlab::app {

// Looks once a period, on a thread of its own. Other functions: any thread.
class Problems {
 public:
  struct Options {
    std::filesystem::path data_dir;
    std::chrono::milliseconds period{1000};
  };
  Problems(storage::Store& store, Options options);
  ~Problems();

  std::vector<std::string> Current() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The same watch, which also tells of problems: at its start if there are any, and whenever they
  // are others than before.
  std::unique_ptr<Watch> Tell(std::unique_ptr<Watch> watch);

  // What a watcher needs. The number of the present set; 0 is "none since the start".
  int64_t version() const { return version_.load(); }
  // `bell` is rung under the lock when the set has changed. Returns what Unsubscribe takes.
  int64_t Subscribe(std::function<void()> bell) ABSL_LOCKS_EXCLUDED(mutex_);
  void Unsubscribe(int64_t subscription) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Problem {
    std::string key;  // what it is, without the numbers that change all the time
    std::string text;
  };

  void Loop();
  void Look() ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Problem> Find();
  void FindWriting(std::vector<Problem>& found);
  void FindDisk(std::vector<Problem>& found) const;
  void FindLog(std::vector<Problem>& found);

  storage::Store& store_;
  const Options options_;
  int64_t explained_at_ =
      0;  // attempt at shortening the log when it was last known who is in the way
  mutable Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Problem> current_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int64_t> version_{0};  // changed under mutex_
  std::map<int64_t, std::function<void()>> bells_ ABSL_GUARDED_BY(mutex_);
  int64_t next_bell_ ABSL_GUARDED_BY(mutex_) = 1;
  std::thread thread_;
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_PROBLEMS_H_
