// Time, as a seam: the wall clock (UTC) for what people read, the monotonic one for durations.
#ifndef NORMLAB_SERVER_BASE_CLOCK_H_
#define NORMLAB_SERVER_BASE_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace normlab {

class Clock {
 public:
  virtual ~Clock() = default;
  // Microseconds since 1970-01-01 UTC. May jump.
  virtual int64_t WallMicros() const = 0;
  // Never goes back; no meaning outside this process.
  virtual std::chrono::steady_clock::time_point Now() const = 0;
};

class SystemClock : public Clock {
 public:
  int64_t WallMicros() const override {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  std::chrono::steady_clock::time_point Now() const override {
    return std::chrono::steady_clock::now();
  }
};

}  // namespace normlab

#endif  // NORMLAB_SERVER_BASE_CLOCK_H_
