// A thread that reads the state of all GPUs every second and puts it on the board.
#ifndef NORMLAB_SERVER_SCHEDULER_GPU_WATCH_H_
#define NORMLAB_SERVER_SCHEDULER_GPU_WATCH_H_

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/scheduler/device_board.h"
#include "server/scheduler/gpu.h"

namespace normlab::scheduler {

class GpuWatch {
 public:
  struct Options {
    std::unique_ptr<GpuSource> source;
    DeviceBoard::OwnerOf owner_of;
    std::function<void()> more_room;  // called when a run may be able to start; any thread
    const Clock* clock = nullptr;
    std::chrono::milliseconds every = std::chrono::seconds(1);
  };
  // Reads once before it returns, so that the board has the GPUs from the start.
  GpuWatch(DeviceBoard& board, Options options);
  ~GpuWatch();

 private:
  bool Look();
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);

  DeviceBoard& board_;
  const Options options_;
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace normlab::scheduler

#endif  // NORMLAB_SERVER_SCHEDULER_GPU_WATCH_H_
