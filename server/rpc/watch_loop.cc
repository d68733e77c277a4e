#include "server/rpc/watch_loop.h"

#include <algorithm>
#include <utility>

#include "server/rpc/watch_stream.h"

namespace normlab::rpc {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

void WatchLoop::Start() {
  tick_ = steady_clock::now();
  AcceptNext();
  {
    MutexLock lock(mutex_);
    started_ = true;
  }
  thread_ = std::thread([this] { Loop(); });
}

void WatchLoop::EndAll() {
  MutexLock lock(mutex_);
  ending_ = true;
  WakeUp();
}

void WatchLoop::Stop() {
  if (!queue_) return;
  {
    MutexLock lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    alarm_.Cancel();
  }
  queue_->Shutdown();
  if (thread_.joinable()) return thread_.join();
  void* tag = nullptr;
  for (bool ok; queue_->Next(&tag, &ok);) continue;
}

void WatchLoop::AcceptNext() {
  auto stream = std::make_shared<WatchStream>(api_, *this);
  streams_.insert(stream);
  stream->Accept();
}

void WatchLoop::Ring(std::shared_ptr<WatchStream> stream) {
  MutexLock lock(mutex_);
  rung_.push_back(std::move(stream));
  if (rung_.size() == 1) WakeUp();
}

void WatchLoop::WakeUp() {
  if (!started_ || stopped_ || std::exchange(alarm_set_, true)) return;
  alarm_.Set(queue_.get(), gpr_now(GPR_CLOCK_MONOTONIC), nullptr);
}

WatchLoop::Time WatchLoop::NextDeadline() {
  MutexLock lock(mutex_);
  return rung_.empty() ? tick_ : std::min(round_, tick_);
}

bool WatchLoop::AwaitDeadline() {
  return AwaitOperation(std::chrono::ceil<microseconds>(NextDeadline() - steady_clock::now()));
}

bool WatchLoop::AwaitOperation(microseconds wait) {
  const gpr_timespec deadline =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                   gpr_time_from_micros(std::max<int64_t>(0, wait.count()), GPR_TIMESPAN));
  void* tag = nullptr;
  bool ok = false;
  const auto next = queue_->AsyncNext(&tag, &ok, deadline);
  if (next == grpc::CompletionQueue::SHUTDOWN) return false;
  if (next == grpc::CompletionQueue::TIMEOUT) return true;
  if (tag == nullptr) {
    MutexLock lock(mutex_);
    alarm_set_ = false;
    return true;
  }
  const auto* operation = static_cast<WatchStream::Operation*>(tag);
  const std::shared_ptr<WatchStream> stream = operation->stream->shared_from_this();
  (stream.get()->*operation->ended)(ok);
  if (stream->gone()) streams_.erase(stream);
  return true;
}

void WatchLoop::BeginRound() {
  Streams rung;
  bool tell_end = false;
  {
    MutexLock lock(mutex_);
    rung.swap(rung_);
    tell_end = ending_ && !std::exchange(told_end_, ending_);
  }
  if (!rung.empty()) round_ = steady_clock::now() + limits_.round;
  if (tell_end) rung.assign(streams_.begin(), streams_.end());
  // What one client is sent stands together, so that it wakes once for it.
  std::ranges::stable_sort(rung, {}, &WatchStream::connection);
  for (const std::shared_ptr<WatchStream>& stream : rung) {
    if (tell_end) stream->End();
    stream->Turn();
    if (stream->gone()) streams_.erase(stream);
    // Most writes have ended by now. Their ends are heard here, while what that takes is in the
    // processor's caches, and not behind a thousand other writes.
    if (stream->writing()) AwaitOperation(microseconds(0));
  }
}

void WatchLoop::Tick(Time now) {
  tick_ = now + std::clamp<milliseconds>(std::min(limits_.heartbeat, limits_.stall_timeout) / 4,
                                         milliseconds(5), milliseconds(1000));
  for (const std::shared_ptr<WatchStream>& stream : streams_) stream->Tick(now);
}

void WatchLoop::Loop() {
  while (AwaitDeadline()) {
    const auto now = steady_clock::now();
    if (now >= round_) BeginRound();
    if (now >= tick_) Tick(now);
  }
}

}  // namespace normlab::rpc
