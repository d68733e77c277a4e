#include "server/scheduler/gpu_watch.h"

#include <utility>

namespace normlab::scheduler {

GpuWatch::GpuWatch(DeviceBoard& board, Options options)
    : board_(board), options_(std::move(options)) {
  Look();
  thread_ = std::thread([this] { Loop(); });
}

GpuWatch::~GpuWatch() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    stop_.NotifyAll();
  }
  thread_.join();
}

bool GpuWatch::Look() {
  return board_.Update(options_.source->Read(), options_.owner_of, options_.clock->Now());
}

void GpuWatch::Loop() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    stop_.WaitFor(mutex_, options_.every);
    if (!stopping_ && Look()) options_.more_room();
  }
}

}  // namespace normlab::scheduler
