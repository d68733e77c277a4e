#include "server/scheduler/gpu_watch.h"

#include <utility>

namespace normlab::scheduler {

GpuWatch::GpuWatch(DeviceBoard& board, Options options)
    : board_(board), options_(std::move(options)) {
  Look();
  thread_ = std::thread([this] { Loop(); });
}

GpuWatch::~GpuWatch() {
  stopping_ = true;
  board_.Nudge();
  thread_.join();
}

DeviceBoard::Changes GpuWatch::Look() {
  return board_.Update(options_.source->Read(), options_.owner_of, options_.clock->Now());
}

void GpuWatch::Loop() {
  bool returning = false;
  while (!stopping_) {
    returning = board_.WaitForNews(returning ? options_.every_while_returning : options_.every);
    if (stopping_) return;
    const DeviceBoard::Changes changes = Look();
    if (changes.more_room || !changes.troubles.empty()) options_.changed(changes);
  }
}

}  // namespace normlab::scheduler
