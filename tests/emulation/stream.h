// What an emulated device works through, in order: at once, or on a thread of its own, as a GPU's
// stream would.
#ifndef NORMLAB_TESTS_EMULATION_STREAM_H_
#define NORMLAB_TESTS_EMULATION_STREAM_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace normlab::trainer {

struct Emulation {
  bool own_thread = false;  // work is done later, while the host goes on
  bool reverse = false;     // elements and lanes in the other order
};

// Memory that only running work may touch: anything else that does gets a segmentation fault.
// (While a stream with a thread of its own is at work, the fault can fail to come.)
class FencedMemory {
 public:
  FencedMemory();
  ~FencedMemory();
  FencedMemory(const FencedMemory&) = delete;
  FencedMemory& operator=(const FencedMemory&) = delete;

  static constexpr size_t kRoom = size_t{1} << 30;  // bytes; real only where they are touched

  void* Allocate(size_t bytes);  // null when there is no such room
  void Free();                   // the room comes back when nothing is left
  size_t free() const { return kRoom - used_; }
  void Open();
  void Close();

 private:
  char* base_ = nullptr;
  size_t used_ = 0;
  size_t alive_ = 0;
};

class EmulatedStream {
 public:
  using Work = std::function<void()>;

  static EmulatedStream& Get();

  void Configure(const Emulation& emulation);
  const Emulation& emulation() const { return emulation_; }
  FencedMemory& memory() { return memory_; }

  void Give(Work work);
  void Wait();
  bool IsIdle();

  void BeginRecording();
  void EndRecording();
  void Replay();

 private:
  EmulatedStream() = default;
  ~EmulatedStream();

  void Do(const Work& work);
  void RunThread();

  Emulation emulation_;
  FencedMemory memory_;
  bool recording_ = false;
  std::vector<Work> recorded_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> waiting_;
  bool busy_ = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_TESTS_EMULATION_STREAM_H_
