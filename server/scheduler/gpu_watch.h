// A thread that reads the state of all GPUs every second and puts it on the board; more often while
// a run's hold on one returns, so that the next run need not wait.
#ifndef NORMLAB_SERVER_SCHEDULER_GPU_WATCH_H_
#define NORMLAB_SERVER_SCHEDULER_GPU_WATCH_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "server/base/clock.h"
#include "server/scheduler/device_board.h"
#include "server/scheduler/gpu.h"

namespace normlab::scheduler {

class GpuWatch {
 public:
  struct Options {
    std::unique_ptr<GpuSource> source;
    DeviceBoard::OwnerOf owner_of;
    // Called when something has changed; from the watch's thread.
    std::function<void(const DeviceBoard::Changes&)> changed;
    const Clock* clock = nullptr;
    std::chrono::milliseconds every = std::chrono::seconds(1);
    std::chrono::milliseconds every_while_returning = std::chrono::milliseconds(50);
  };
  // Reads once before it returns, so that the board has the GPUs from the start.
  GpuWatch(DeviceBoard& board, Options options);
  ~GpuWatch();

 private:
  DeviceBoard::Changes Look();
  void Loop();

  DeviceBoard& board_;
  const Options options_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace normlab::scheduler

#endif  // NORMLAB_SERVER_SCHEDULER_GPU_WATCH_H_
