#include "server/trainer/train/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "server/trainer/model/buffer.h"
#include "server/trainer/model/initialization.h"
#include "server/trainer/train/schedule.h"
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
    const auto optimizer = MakeOptimizer(settings, parameters, *kernels);
    Buffer weights(parameters.buffer_size());
    InitializeParameters(TrainingSettings(), parameters, weights.span());
    const std::vector<float> first(48, 0.5f);
    const std::vector<float> second(48, -0.25f);
    optimizer->Update(1, 0.1, 0, 48, first.data(), weights.data());
    EXPECT_NEAR(weights.data()[0], 0.899000002, 1e-7);
    optimizer->Update(2, 0.1, 0, 48, second.data(), weights.data());
    EXPECT_NEAR(weights.data()[0], 0.871264058, 1e-7);
    EXPECT_EQ(weights.data()[36], weights.data()[0]);  // the tail of the array
  }
}

// The first update is rate * sign(g) whatever the betas are. 1 - .999 in single precision is off by
// 1e-5, so the correction has to be made from the same rounded beta as the average.
TEST(AdamW, TheFirstUpdateIsTheRateAlsoWithAverageOfThousandSteps) {
  TrainingSettings settings = ExampleSettings();
  settings.beta2 = 0.999;
  settings.weight_decay = 0;
  ParameterTable parameters;
  parameters.Declare("w/kernel", {1, 16}, Initializer::Constant(1));
  const auto optimizer = MakeOptimizer(settings, parameters);
  Buffer weights(parameters.buffer_size());
  InitializeParameters(TrainingSettings(), parameters, weights.span());
  const std::vector<float> gradient(16, 0.5f);
  optimizer->Update(1, 0.1, 0, 16, gradient.data(), weights.data());
  EXPECT_NEAR(weights.data()[0], 0.9, 1e-7);
}

TEST(AdamW, DecayCanBeLimitedToMatrices) {
  TrainingSettings settings = ExampleSettings();
  settings.decay_parameters = "matrices";
  ParameterTable parameters;
  parameters.Declare("a/kernel", {2, 8}, Initializer::Constant(1));
  parameters.Declare("a/bias", {8}, Initializer::Constant(1));
  const auto optimizer = MakeOptimizer(settings, parameters);
  Buffer weights(parameters.buffer_size());
  InitializeParameters(TrainingSettings(), parameters, weights.span());
  const std::vector<float> none(32, 0.0f);
  optimizer->Update(1, 0.1, 0, 32, none.data(), weights.data());
  EXPECT_FLOAT_EQ(weights.data()[0], 0.999f);
  EXPECT_EQ(weights.data()[16], 1.0f);
}

// momentum .9, rate .1, decay .01, g = .5 then -.25: b = .5, then .9 * .5 - .25 = .2;
// w = 1 - .1 (.5 + .01) = .949, then .949 - .1 (.2 + .00949) = .928051.
TEST(Sgd, TwoStepsMatchTheExampleByHand) {
  TrainingSettings settings = ExampleSettings();
  settings.optimizer = "sgd";
  settings.momentum = 0.9;
  ParameterTable parameters;
  parameters.Declare("w/kernel", {1, 37}, Initializer::Constant(1));
  const auto optimizer = MakeOptimizer(settings, parameters);
  Buffer weights(parameters.buffer_size());
  InitializeParameters(TrainingSettings(), parameters, weights.span());
  const std::vector<float> first(48, 0.5f);
  const std::vector<float> second(48, -0.25f);
  optimizer->Update(1, 0.1, 0, 48, first.data(), weights.data());
  EXPECT_NEAR(weights.data()[0], 0.949, 1e-7);
  optimizer->Update(2, 0.1, 0, 48, second.data(), weights.data());
  EXPECT_NEAR(weights.data()[0], 0.928051, 1e-7);
  EXPECT_EQ(weights.data()[36], weights.data()[0]);
  ASSERT_EQ(optimizer->States().size(), 1u);
  EXPECT_EQ(optimizer->States()[0].name, "momentum");
  EXPECT_FLOAT_EQ(optimizer->States()[0].values[0], 0.2f);
}

TEST(Sgd, DecayCanBeLimitedToMatrices) {
  TrainingSettings settings = ExampleSettings();
  settings.optimizer = "sgd";
  settings.decay_parameters = "matrices";
  ParameterTable parameters;
  parameters.Declare("a/kernel", {2, 8}, Initializer::Constant(1));
  parameters.Declare("a/bias", {8}, Initializer::Constant(1));
  const auto optimizer = MakeOptimizer(settings, parameters);
  Buffer weights(parameters.buffer_size());
  InitializeParameters(TrainingSettings(), parameters, weights.span());
  const std::vector<float> none(32, 0.0f);
  optimizer->Update(1, 0.1, 0, 32, none.data(), weights.data());
  EXPECT_FLOAT_EQ(weights.data()[0], 0.999f);
  EXPECT_EQ(weights.data()[16], 1.0f);
}

std::vector<double> Rates(const TrainingSettings& settings, int64_t last) {
  std::vector<double> rates;
  for (int64_t step = 1; step <= last; ++step) rates.push_back(LearningRate(settings, step));
  return rates;
}

TEST(LearningRate, WarmupCountsFromOneAndReachesTheFullRate) {
  TrainingSettings settings;
  settings.learning_rate = 1.0;
  settings.warmup_steps = 4;
  EXPECT_THAT(Rates(settings, 5), testing::ElementsAre(0.25, 0.5, 0.75, 1.0, 1.0));
  settings.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(LearningRate(settings, 1), 1.0);
}

TEST(LearningRate, LinearFallsFromTheFullRateToTheFloorAtTheLastStep) {
  TrainingSettings settings;
  settings.schedule = "linear";
  settings.learning_rate = 1.0;
  settings.learning_rate_floor = 0.2;
  settings.steps = 5;
  const auto near = [](double value) { return testing::DoubleNear(value, 1e-15); };
  EXPECT_THAT(Rates(settings, 5),
              testing::ElementsAre(near(1.0), near(0.8), near(0.6), near(0.4), near(0.2)));
  settings.warmup_steps = 3;
  EXPECT_THAT(Rates(settings, 5),
              testing::ElementsAre(near(1.0 / 3), near(2.0 / 3), near(1.0), near(0.6), near(0.2)));
}

TEST(LearningRate, CosineIsHalfwayInTheMiddleAndFlatAtItsEnds) {
  TrainingSettings settings;
  settings.schedule = "cosine";
  settings.learning_rate = 1.0;
  settings.learning_rate_floor = 0.1;
  settings.steps = 9;
  const std::vector<double> rates = Rates(settings, 9);
  EXPECT_DOUBLE_EQ(rates[0], 1.0);
  EXPECT_NEAR(rates[2], 0.1 + 0.9 * 0.853553390593274, 1e-12);  // (1 + cos(pi/4)) / 2
  EXPECT_NEAR(rates[4], 0.55, 1e-12);
  EXPECT_NEAR(rates[8], 0.1, 1e-15);
  settings.warmup_steps = 5;
  EXPECT_DOUBLE_EQ(LearningRate(settings, 1), 0.2);
  EXPECT_DOUBLE_EQ(LearningRate(settings, 5), 1.0);
  EXPECT_NEAR(LearningRate(settings, 7), 0.55, 1e-12);
  EXPECT_NEAR(LearningRate(settings, 9), 0.1, 1e-15);
}

TEST(LearningRate, ARunThatIsAllWarmupEndsAtTheFullRate) {
  for (const char* schedule : {"constant", "cosine", "linear"}) {
    TrainingSettings settings;
    settings.schedule = schedule;
    settings.learning_rate = 1.0;
    settings.steps = settings.warmup_steps = 4;
    EXPECT_THAT(Rates(settings, 4), testing::ElementsAre(0.25, 0.5, 0.75, 1.0)) << schedule;
  }
}

TEST(LearningRate, NoamPeaksAtTheEndOfItsWarmup) {
  TrainingSettings settings;
  settings.schedule = "noam";
  settings.learning_rate = 1.0;
  settings.d_model = 512;
  settings.warmup_steps = 4000;
  EXPECT_NEAR(LearningRate(settings, 4000), 6.987712e-4, 5e-11);
  EXPECT_LT(LearningRate(settings, 3999), LearningRate(settings, 4000));
  EXPECT_LT(LearningRate(settings, 4001), LearningRate(settings, 4000));
  EXPECT_NEAR(LearningRate(settings, 16000), 6.987712e-4 / 2, 5e-11);
  EXPECT_NEAR(LearningRate(settings, 1000), 6.987712e-4 / 4, 5e-11);
  settings.d_model = 128;
  settings.warmup_steps = 2000;
  EXPECT_NEAR(LearningRate(settings, 2000), 1.976424e-3, 5e-10);
  settings.learning_rate = 3.0;  // the scale
  EXPECT_NEAR(LearningRate(settings, 2000), 3 * 1.976424e-3, 2e-9);
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
