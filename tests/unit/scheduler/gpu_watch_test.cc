#include "server/scheduler/gpu_watch.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"

namespace normlab::scheduler {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// One GPU with one process of a run on it, until it is told otherwise.
class OneGpu : public GpuSource {
 public:
  OneGpu(std::atomic<bool>& busy, std::atomic<int>& looks) : busy_(busy), looks_(looks) {}
  std::vector<GpuReading> Read() override {
    ++looks_;
    GpuReading gpu = {.id = "gpu:0", .name = "H200", .uuid = "GPU-0", .memory_bytes = 1 << 30};
    if (busy_) gpu.processes = {{.pid = 1000, .memory_bytes = 1 << 20}};
    return {gpu};
  }

 private:
  std::atomic<bool>& busy_;
  std::atomic<int>& looks_;
};

class GpuWatchTest : public ::testing::Test {
 protected:
  void Watch(milliseconds every, milliseconds every_while_returning) {
    GpuWatch::Options options;
    options.source = std::make_unique<OneGpu>(busy_, looks_);
    options.owner_of = [](pid_t) { return std::string("run"); };
    options.changed = [this](const DeviceBoard::Changes& changes) {
      if (changes.more_room) changed_ = true;
    };
    options.clock = &clock_;
    options.every = every;
    options.every_while_returning = every_while_returning;
    watch_ = std::make_unique<GpuWatch>(board_, std::move(options));
  }
  // Whether it comes true before long.
  template <typename Condition>
  static bool Comes(const Condition& condition) {
    for (int i = 0; i < 20'000 && !condition(); ++i) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return condition();
  }
  bool Held() const { return !board_.Devices().at(0).leases.empty(); }

  SystemClock clock_;
  DeviceBoard board_{{}};
  std::atomic<bool> busy_ = true, changed_ = false;
  std::atomic<int> looks_ = 0;
  std::unique_ptr<GpuWatch> watch_;
};

TEST_F(GpuWatchTest, TheGpusAreThereBeforeItIsMadeAndLookedAtFromTimeToTime) {
  Watch(milliseconds(1), hours(1));
  EXPECT_EQ(board_.Devices().at(0).uuid, "GPU-0");
  EXPECT_TRUE(Comes([this] { return looks_ > 3; }));
}

TEST_F(GpuWatchTest, ALeaseThatReturnsIsLookedAfterAtOnceAndUntilItIsBack) {
  Watch(hours(1), milliseconds(1));
  EXPECT_EQ(looks_, 1);
  board_.Take({.run = "run", .memory_bytes = 1 << 20}, {"gpu:0"});
  board_.Release("run");
  EXPECT_TRUE(Comes([this] { return looks_ > 3; }));
  EXPECT_TRUE(Held()) << "its process is still there";
  busy_ = false;
  EXPECT_TRUE(Comes([this] { return !Held(); }));
  EXPECT_TRUE(Comes([this] { return changed_.load(); })) << "the next run may start";
}

}  // namespace
}  // namespace normlab::scheduler
