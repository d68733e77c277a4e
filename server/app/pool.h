// A few threads for work that may wait for the disk.
#ifndef NORMLAB_SERVER_APP_POOL_H_
#define NORMLAB_SERVER_APP_POOL_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "server/base/mutex.h"

namespace normlab::app {

class Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
  }
  ~Pool() { Stop(); }

  // Any thread. After Stop the work is dropped.
  void Post(std::function<void()> work) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    if (stopping_) return;
    queue_.push_back(std::move(work));
    ready_.NotifyOne();
  }

  // Does what was posted before, then ends the threads. Not from one of them.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      ready_.NotifyAll();
    }
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

 private:
  void Loop() {
    while (true) {
      std::function<void()> work;
      {
        MutexLock lock(mutex_);
        while (queue_.empty() && !stopping_) ready_.Wait(mutex_);
        if (queue_.empty()) return;
        work = std::move(queue_.front());
        queue_.pop_front();
      }
      work();
    }
  }

  Mutex mutex_;
  CondVar ready_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_POOL_H_
