#include "server/trainer/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "server/trainer/model/choices.h"

namespace normlab::trainer {
namespace {

double Noam(const TrainingSettings& settings, double t) {
  const auto warmup = static_cast<double>(settings.warmup_steps);
  return settings.learning_rate / std::sqrt(static_cast<double>(settings.d_model)) *
         std::min(1.0 / std::sqrt(t), t / (warmup * std::sqrt(warmup)));
}

// The part of the decay that is behind step `step`: 0 at the first full rate, 1 at the last step.
double Progress(const TrainingSettings& settings, int64_t step) {
  const int64_t start = std::max<int64_t>(1, settings.warmup_steps);
  if (step <= start || settings.steps <= start) return 0;
  return static_cast<double>(step - start) / static_cast<double>(settings.steps - start);
}

}  // namespace

double LearningRate(const TrainingSettings& settings, int64_t step) {
  const double rate = settings.learning_rate;
  const int64_t warmup = settings.warmup_steps;
  if (settings.schedule == "noam") return Noam(settings, static_cast<double>(step));
  if (step < warmup) return rate * static_cast<double>(step) / static_cast<double>(warmup);
  const double floor = settings.learning_rate_floor;
  if (settings.schedule == "cosine") {
    const double angle = std::numbers::pi * Progress(settings, step);
    return floor + (rate - floor) * 0.5 * (1.0 + std::cos(angle));
  }
  if (settings.schedule == "linear") {
    return floor + (rate - floor) * (1.0 - Progress(settings, step));
  }
  return rate;
}

void CheckSchedule(const TrainingSettings& settings) {
  CheckChoice("schedule", settings.schedule, {"constant", "cosine", "linear", "noam"});
  if (settings.warmup_steps < 0) throw std::runtime_error("warmup_steps must not be negative");
  if (settings.schedule == "noam" && settings.warmup_steps == 0) {
    throw std::runtime_error(
        "schedule noam needs warmup_steps of at least 1: its rate peaks there");
  }
  const bool decays = settings.schedule == "cosine" || settings.schedule == "linear";
  if (decays && settings.learning_rate_floor > settings.learning_rate) {
    throw std::runtime_error("learning_rate_floor is above learning_rate: schedule " +
                             settings.schedule + " would rise");
  }
}

}  // namespace normlab::trainer
