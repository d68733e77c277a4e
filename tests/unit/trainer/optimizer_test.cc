#include "server/trainer/train/optimizer.h"

#include <gtest/gtest.h>

#include <vector>

#include "server/trainer/model/initialization.h"
#include "server/trainer/train/spike.h"
#include "tests/unit/trainer/probe.h"

namespace normlab::trainer {
namespace {

TrainingSettings ExampleSettings() {
  TrainingSettings settings;
  settings.learning_rate = 0.1;
  settings.weight_decay = 0.01;
  return settings;
}

TEST(AdamW, TwoStepsMatchTheDoublePrecisionExample) {
  for (const Kernels* kernels : AvailableKernels()) {
    const TrainingSettings settings = ExampleSettings();
    ParameterTable parameters;
    parameters.Declare("w/kernel", {1, 37}, Initializer::Constant(1));
    AdamW optimizer(settings, parameters, *kernels);
    Buffer weights(parameters.buffer_size());
    InitializeParameters(TrainingSettings(), parameters, weights.span());
    const std::vector<float> first(48, 0.5f);
    const std::vector<float> second(48, -0.25f);
    optimizer.Update(1, 0.1, 0, 48, first.data(), weights.data());
    EXPECT_NEAR(weights.data()[0], 0.899000002, 1e-7);
    optimizer.Update(2, 0.1, 0, 48, second.data(), weights.data());
    EXPECT_NEAR(weights.data()[0], 0.871264058, 1e-7);
    EXPECT_EQ(weights.data()[36], weights.data()[0]);  // the tail of the array
  }
}

TEST(AdamW, DecayCanBeLimitedToMatrices) {
  TrainingSettings settings = ExampleSettings();
  settings.decay_parameters = "matrices";
  ParameterTable parameters;
  parameters.Declare("a/kernel", {2, 8}, Initializer::Constant(1));
  parameters.Declare("a/bias", {8}, Initializer::Constant(1));
  AdamW optimizer(settings, parameters);
  Buffer weights(parameters.buffer_size());
  InitializeParameters(TrainingSettings(), parameters, weights.span());
  const std::vector<float> none(32, 0.0f);
  optimizer.Update(1, 0.1, 0, 32, none.data(), weights.data());
  EXPECT_FLOAT_EQ(weights.data()[0], 0.999f);
  EXPECT_EQ(weights.data()[16], 1.0f);
}

TEST(LearningRate, WarmupCountsFromOneAndReachesTheFullRate) {
  TrainingSettings settings;
  settings.learning_rate = 1.0;
  settings.warmup_steps = 4;
  const double expected[] = {0.25, 0.5, 0.75, 1.0, 1.0};
  for (int64_t step = 1; step <= 5; ++step) {
    EXPECT_DOUBLE_EQ(LearningRate(settings, step), expected[step - 1]);
  }
  settings.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(LearningRate(settings, 1), 1.0);
}

TEST(SpikeDetector, ComparesWithTheMeanOfTheLastHundred) {
  SpikeDetector detector;
  EXPECT_FALSE(detector.IsSpike(100.0));  // nothing to compare with
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(detector.IsSpike(1.0));
  EXPECT_FALSE(detector.IsSpike(1.99));  // the hundred is forgotten
  EXPECT_TRUE(detector.IsSpike(2.1));
}

}  // namespace
}  // namespace normlab::trainer
