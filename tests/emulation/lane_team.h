// The lanes of a row, one after the other: each runs until it needs the others.
#ifndef NORMLAB_TESTS_EMULATION_LANE_TEAM_H_
#define NORMLAB_TESTS_EMULATION_LANE_TEAM_H_

#include <ucontext.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

namespace normlab::trainer {

// As on a GPU, with fewer lanes.
struct Lanes {
  int lane = 0;
#ifdef __SANITIZE_THREAD__
  static constexpr int count = 1;  // ThreadSanitizer does not follow changes of the stack
#else
  static constexpr int count = 4;
#endif

  float Sum(float x) const;
  float Max(float x) const;
  void Meet() const;
};

class LaneTeam {
 public:
  static LaneTeam& Get();  // the calling thread's

  // Runs body for every lane, from either end. Aborts with a message if the lanes do not meet
  // equally often.
  void Run(const std::function<void(const Lanes&)>& body, bool reverse);

  // Called by lanes: returns when all have come, with what each brought.
  const std::array<float, Lanes::count>& Exchange(int lane, float x);

 private:
  struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool ended = false;
    int meetings = 0;
  };

  static void Enter(int lane);
  void Resume(int lane);

  std::array<Fiber, Lanes::count> fibers_;
  ucontext_t scheduler_;
  const std::function<void(const Lanes&)>* body_ = nullptr;
  // Of even and of odd meetings: who is ahead does not overwrite what others have yet to read.
  std::array<std::array<float, Lanes::count>, 2> brought_{};
};

}  // namespace normlab::trainer

#endif  // NORMLAB_TESTS_EMULATION_LANE_TEAM_H_
