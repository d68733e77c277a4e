// A clock that moves only when told.
#ifndef NORMLAB_TESTS_FAKES_FAKE_CLOCK_H_
#define NORMLAB_TESTS_FAKES_FAKE_CLOCK_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "server/base/clock.h"

namespace normlab::fakes {

class FakeClock : public Clock {
 public:
  int64_t WallMicros() const override { return 1'767'225'600'000'000 + micros_ + jumped_; }
  std::chrono::steady_clock::time_point Now() const override {
    return std::chrono::steady_clock::time_point(std::chrono::microseconds(micros_));
  }
  void Advance(std::chrono::microseconds time) { micros_ += time.count(); }
  // Sets the wall clock forward, or back. The monotonic one does not care.
  void JumpWall(std::chrono::microseconds time) { jumped_ += time.count(); }

 private:
  std::atomic<int64_t> micros_ = 1'000'000;
  std::atomic<int64_t> jumped_ = 0;
};

}  // namespace normlab::fakes

#endif  // NORMLAB_TESTS_FAKES_FAKE_CLOCK_H_
