#include "tests/emulation/stream.h"

#include <sys/mman.h>

#include <stdexcept>
#include <utility>

namespace normlab::trainer {
namespace {

constexpr size_t kPage = 4096;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

FencedMemory::FencedMemory() {
  void* room = mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) throw std::runtime_error("no address space for the emulated memory");
  base_ = static_cast<char*>(room);
}

FencedMemory::~FencedMemory() { munmap(base_, kRoom); }

void* FencedMemory::Allocate(size_t bytes) {
  const size_t size = RoundUp(bytes, 64);
  if (used_ + size > kRoom) return nullptr;
  void* data = base_ + used_;
  used_ += size;
  ++alive_;
  return data;
}

void FencedMemory::Free() {
  if (--alive_ > 0) return;
  madvise(base_, RoundUp(used_, kPage), MADV_DONTNEED);  // zeros again
  used_ = 0;
}

void FencedMemory::Open() { mprotect(base_, RoundUp(used_, kPage), PROT_READ | PROT_WRITE); }

void FencedMemory::Close() { mprotect(base_, RoundUp(used_, kPage), PROT_NONE); }

EmulatedStream& EmulatedStream::Get() {
  static EmulatedStream stream;
  return stream;
}

EmulatedStream::~EmulatedStream() { Configure({}); }

void EmulatedStream::Configure(const Emulation& emulation) {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  emulation_ = emulation;
  ended_ = false;
  if (emulation_.own_thread) thread_ = std::thread([this] { RunThread(); });
}

void EmulatedStream::Give(Work work) {
  if (recording_) {
    recorded_.push_back(std::move(work));
    return;
  }
  if (!emulation_.own_thread) return Do(work);
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void EmulatedStream::Do(const Work& work) {
  memory_.Open();
  work();
  memory_.Close();
}

void EmulatedStream::RunThread() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Work work = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    Do(work);
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void EmulatedStream::Wait() {
  if (recording_) throw std::runtime_error("waiting while recording");
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && !busy_; });
}

bool EmulatedStream::IsIdle() {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && !busy_;
}

void EmulatedStream::BeginRecording() {
  recorded_.clear();
  recording_ = true;
}

void EmulatedStream::EndRecording() { recording_ = false; }

void EmulatedStream::Replay() {
  for (const Work& work : recorded_) Give(work);
}

}  // namespace normlab::trainer
