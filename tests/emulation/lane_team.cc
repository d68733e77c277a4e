#include "tests/emulation/lane_team.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace normlab::trainer {
namespace {

constexpr size_t kStack = 128 * 1024;

// Apart, because a compiler expects that getcontext() may return twice; makecontext() prevents it.
[[gnu::noinline]] void Initialize(ucontext_t& context) { getcontext(&context); }

}  // namespace

// The order of a GPU's butterfly: the same sum in every lane.
float Lanes::Sum(float x) const {
  std::array<float, count> values = LaneTeam::Get().Exchange(lane, x);
  for (size_t step = count / 2; step > 0; step /= 2) {
    for (size_t i = 0; i < step; ++i) values[i] += values[i + step];
  }
  return values[0];
}

float Lanes::Max(float x) const {
  const std::array<float, count> values = LaneTeam::Get().Exchange(lane, x);
  float highest = values[0];
  for (const float value : values) highest = std::fmax(highest, value);
  return highest;
}

void Lanes::Meet() const { LaneTeam::Get().Exchange(lane, 0); }

LaneTeam& LaneTeam::Get() {
  thread_local LaneTeam team;
  return team;
}

void LaneTeam::Run(const std::function<void(const Lanes&)>& body, bool reverse) {
  if (Lanes::count == 1) {
    body({0});
    return;
  }
  body_ = &body;
  for (int lane = 0; lane < Lanes::count; ++lane) {
    Fiber& fiber = fibers_[static_cast<size_t>(lane)];
    if (fiber.stack == nullptr) fiber.stack = std::make_unique<char[]>(kStack);
    fiber.ended = false;
    fiber.meetings = 0;
    Initialize(fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = &scheduler_;
    makecontext(&fiber.context, reinterpret_cast<void (*)()>(Enter), 1, lane);
  }
  while (!std::ranges::all_of(fibers_, &Fiber::ended)) {
    for (int i = 0; i < Lanes::count; ++i) Resume(reverse ? Lanes::count - 1 - i : i);
    const bool together = std::ranges::all_of(fibers_, [this](const Fiber& fiber) {
      return fiber.ended == fibers_[0].ended && fiber.meetings == fibers_[0].meetings;
    });
    if (!together) {
      std::fprintf(stderr, "the lanes of a row do not meet equally often\n");
      std::abort();
    }
  }
}

void LaneTeam::Enter(int lane) {
  LaneTeam& team = Get();
  (*team.body_)({lane});
  team.fibers_[static_cast<size_t>(lane)].ended = true;
}

void LaneTeam::Resume(int lane) {
  Fiber& fiber = fibers_[static_cast<size_t>(lane)];
  if (!fiber.ended) swapcontext(&scheduler_, &fiber.context);
}

const std::array<float, Lanes::count>& LaneTeam::Exchange(int lane, float x) {
  Fiber& fiber = fibers_[static_cast<size_t>(lane)];
  auto& brought = brought_[static_cast<size_t>(fiber.meetings % 2)];
  ++fiber.meetings;
  brought[static_cast<size_t>(lane)] = x;
  if (Lanes::count > 1) swapcontext(&fiber.context, &scheduler_);
  return brought;
}

}  // namespace normlab::trainer
