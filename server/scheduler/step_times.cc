#include "server/scheduler/step_times.h"

#include <cmath>
#include <iterator>

namespace normlab::scheduler {
namespace {

constexpr size_t kLargest = 4096;  // costs that are remembered
constexpr double kSimilar = 2;     // times as much arithmetic, or as little

}  // namespace

void StepTimes::Note(const StepCost& cost, double steps, double seconds) {
  if (!(steps > 0) || !(seconds > 0)) return;
  if (measured_.size() >= kLargest && !measured_.contains(cost)) measured_.erase(measured_.begin());
  Measured& measured = measured_[cost];
  measured.steps = measured.steps / 2 + steps;
  measured.seconds = measured.seconds / 2 + seconds;
}

std::optional<double> StepTimes::SecondsPerStep(const StepCost& cost) const {
  const auto same = measured_.find(cost);
  if (same != measured_.end()) return same->second.seconds / same->second.steps;
  if (!(cost.flops_per_step > 0)) return std::nullopt;
  // Those with the same kind of device and threads lie side by side, by their arithmetic.
  std::optional<double> seconds;
  double nearest = std::log(kSimilar);
  const auto consider = [&](std::map<StepCost, Measured>::const_iterator one) {
    const StepCost& other = one->first;
    if (other.gpu != cost.gpu || other.threads != cost.threads || !(other.flops_per_step > 0)) {
      return;
    }
    const double ratio = cost.flops_per_step / other.flops_per_step;
    if (std::abs(std::log(ratio)) > nearest) return;
    nearest = std::abs(std::log(ratio));
    seconds = one->second.seconds / one->second.steps * ratio;
  };
  const auto above = measured_.lower_bound(cost);
  if (above != measured_.begin()) consider(std::prev(above));
  if (above != measured_.end()) consider(above);
  return seconds;
}

}  // namespace normlab::scheduler
