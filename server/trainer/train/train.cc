#include <array>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "server/trainer/train/data.h"
#include "server/trainer/train/learner.h"
#include "server/trainer/train/spike.h"
#include "server/trainer/train/threads.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {
namespace {

using Clock = std::chrono::steady_clock;

// Order of the observations of a step.
enum Series : uint32_t {
  kLoss,
  kGradientNorm,
  kLearningRate,
  kStepMilliseconds,
  kTokensPerSecond,
  kNonFiniteCount,
  kSpike,
  kSeriesCount,
};

const std::array<std::string, kSeriesCount>& SeriesNames() {
  static const std::array<std::string, kSeriesCount> names = {"loss",
                                                              "gradient_norm",
                                                              "learning_rate",
                                                              "step_milliseconds",
                                                              "tokens_per_second",
                                                              "non_finite_count",
                                                              "spike"};
  return names;
}

// "loss became NaN at step 12".
std::string DivergenceReason(double loss, double gradient_norm, int64_t step) {
  const bool by_loss = !std::isfinite(loss);
  const double value = by_loss ? loss : gradient_norm;
  return std::string(by_loss ? "loss" : "gradient norm") + " became " +
         (std::isnan(value) ? "NaN" : "infinite") + " at step " + std::to_string(step);
}

Result TrainSteps(const TrainingSettings& settings, Observer& observer) {
  SetThreads(settings.threads);
  Learner learner(settings);
  const std::unique_ptr<DataSource> data = MakeDataSource(settings);
  observer.OnModel({.parameter_count = learner.parameters().parameter_count(),
                    .instruction_set = BestKernels().instruction_set});
  observer.OnSeries(SeriesNames());

  const int64_t rows = settings.batch_size * settings.sequence_length * settings.accumulate;
  std::vector<Batch> batches(static_cast<size_t>(settings.accumulate));
  SpikeDetector spikes;
  for (int64_t step = 1; step <= settings.steps; ++step) {
    const Clock::time_point start = Clock::now();
    for (Batch& batch : batches) data->Next(batch);
    const double loss = learner.ComputeGradients(step, batches);
    const double gradient_norm = learner.GradientNorm();
    const double learning_rate = LearningRate(settings, step);
    const bool finite = std::isfinite(loss) && std::isfinite(gradient_norm);
    const bool diverged = !finite && settings.stop_on_non_finite;
    if (!diverged) learner.Update(step, learning_rate);

    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const int64_t non_finite =
        finite ? 0 : learner.NonFiniteCount() + (std::isfinite(loss) ? 0 : 1);
    observer.OnStep(step, std::array<Observation, kSeriesCount>{{
                              {kLoss, loss},
                              {kGradientNorm, gradient_norm},
                              {kLearningRate, learning_rate},
                              {kStepMilliseconds, seconds * 1e3},
                              {kTokensPerSecond, static_cast<double>(rows) / seconds},
                              {kNonFiniteCount, static_cast<double>(non_finite)},
                              {kSpike, spikes.IsSpike(loss) ? 1.0 : 0.0},
                          }});
    if (diverged) {
      return {Ending::kDiverged, step, DivergenceReason(loss, gradient_norm, step)};
    }
    if (observer.Requested() != Request::kGoOn) return {Ending::kStopped, step, "stop requested"};
  }
  return {Ending::kFinished, settings.steps, ""};
}

}  // namespace

Result Train(const TrainingSettings& settings, Observer& observer) {
  try {
    return TrainSteps(settings, observer);
  } catch (const std::runtime_error&) {
    throw;
  } catch (const std::exception& error) {
    // Torch appends a stack trace, which says nothing to the owner of a run.
    const std::string message = error.what();
    throw std::runtime_error(message.substr(0, message.find('\n')));
  }
}

}  // namespace normlab::trainer
