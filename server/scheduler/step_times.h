// How long steps take, learnt from runs that were trained here: what is expected of the next ones.
#ifndef NORMLAB_SERVER_SCHEDULER_STEP_TIMES_H_
#define NORMLAB_SERVER_SCHEDULER_STEP_TIMES_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>

namespace normlab::scheduler {

// What a step's time depends on most.
struct StepCost {
  bool gpu = false;
  int64_t threads = 1;        // on a CPU
  double flops_per_step = 0;  // estimated from the settings
  auto operator<=>(const StepCost&) const = default;
};

// Not thread-safe.
class StepTimes {
 public:
  // Some steps were trained in so many seconds, starting and checkpoints included. The latest count
  // most: those before them count half each time.
  void Note(const StepCost& cost, double steps, double seconds);
  // Seconds of a step: as measured for the same cost, else, in proportion to the arithmetic, for
  // the nearest one of at most twice or half as much. Absent when there is none.
  std::optional<double> SecondsPerStep(const StepCost& cost) const;

 private:
  struct Measured {
    double steps = 0;
    double seconds = 0;
  };
  std::map<StepCost, Measured> measured_;  // not more than kLargest
};

}  // namespace normlab::scheduler

#endif  // NORMLAB_SERVER_SCHEDULER_STEP_TIMES_H_
