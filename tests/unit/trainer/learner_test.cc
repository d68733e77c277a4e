// Gradients of several batches as one step, clipping, and looking without touching.
#include "server/trainer/train/learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "server/trainer/train/data.h"
#include "tests/unit/trainer/small_settings.h"

namespace normlab::trainer {
namespace {

std::vector<float> Copy(std::span<const float> values) { return {values.begin(), values.end()}; }

// Sequences [begin, end) of a batch.
Batch Part(const Batch& batch, int64_t begin, int64_t end, int64_t time) {
  Batch part;
  part.tokens.assign(batch.tokens.begin() + begin * time, batch.tokens.begin() + end * time);
  part.targets.assign(batch.targets.begin() + begin * time, batch.targets.begin() + end * time);
  return part;
}

class AccumulationTest : public testing::TestWithParam<bool> {};

// Whether the batches have the same number of targets that count, or 4 times as many in one.
INSTANTIATE_TEST_SUITE_P(Targets, AccumulationTest, testing::Bool(), [](const auto& uneven) {
  return std::string(uneven.param ? "Uneven" : "Even");
});

TEST_P(AccumulationTest, TwoBatchesOfFourAreOneBatchOfEight) {
  TrainingSettings settings = SmallSettings();
  settings.batch_size = 8;
  Batch whole;
  MakeDataSource(settings)->Next(whole);
  const int64_t time = settings.sequence_length;
  if (GetParam()) {
    for (int64_t i = 0; i < 4 * time; ++i) {
      if (i % 4 != 0) whole.targets[static_cast<size_t>(i)] = kIgnored;
    }
  }
  Learner at_once(settings);
  const double loss = at_once.ComputeGradients(1, {&whole, 1});

  settings.batch_size = 4;
  const std::vector<Batch> halves = {Part(whole, 0, 4, time), Part(whole, 4, 8, time)};
  Learner in_two(settings);
  EXPECT_NEAR(in_two.ComputeGradients(1, halves), loss, 1e-6 * loss);
  EXPECT_NEAR(in_two.GradientNorm(), at_once.GradientNorm(), 1e-5 * at_once.GradientNorm());
  const double scale = std::abs(
      *std::ranges::max_element(at_once.gradients(), {}, [](float x) { return std::abs(x); }));
  for (size_t i = 0; i < at_once.gradients().size(); ++i) {
    EXPECT_NEAR(in_two.gradients()[i], at_once.gradients()[i], 1e-6 * scale);
  }

  // A mean of the batches' means would be something else if their sizes differ.
  Learner first(settings);
  Learner second(settings);
  const double mean_of_means =
      (first.ComputeGradients(1, {&halves[0], 1}) + second.ComputeGradients(1, {&halves[1], 1})) /
      2;
  if (GetParam()) {
    EXPECT_GT(std::abs(mean_of_means - loss), 1e-4 * loss);
  } else {
    EXPECT_NEAR(mean_of_means, loss, 1e-6 * loss);
  }
}

// A learner with gradients of a real batch.
class ClipTest : public testing::Test {
 protected:
  ClipTest() {
    MakeDataSource(settings_)->Next(batch_);
    learner_.ComputeGradients(1, {&batch_, 1});
  }

  // The gradients' norm in double precision, from the parameters alone.
  double NormOfParameters() const {
    double squares = 0;
    for (const Parameter& parameter : learner_.parameters().all()) {
      for (int64_t i = 0; i < parameter.count; ++i) {
        const double g = learner_.gradients()[static_cast<size_t>(parameter.offset + i)];
        squares += g * g;
      }
    }
    return std::sqrt(squares);
  }

  TrainingSettings settings_ = SmallSettings();
  Batch batch_;
  Learner learner_{settings_};
};

TEST_F(ClipTest, ScalesAllGradientsDownToTheLimit) {
  const double norm = learner_.GradientNorm();
  EXPECT_NEAR(norm, NormOfParameters(), 1e-9 * norm);
  const std::vector<float> before = Copy(learner_.gradients());
  settings_.clip_norm = norm / 4;
  learner_.Clip(norm);
  EXPECT_NEAR(learner_.GradientNorm(), norm / 4, 1e-6 * norm);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_FLOAT_EQ(learner_.gradients()[i], before[i] / 4);
  }
}

TEST(Clip, ATiedEmbeddingCountsOnce) {
  TrainingSettings settings = SmallSettings();
  settings.tie_embeddings = true;
  Batch batch;
  MakeDataSource(settings)->Next(batch);
  Learner learner(settings);
  learner.ComputeGradients(1, {&batch, 1});
  double squares = 0;
  for (const Parameter& parameter : std::as_const(learner).parameters().all()) {
    EXPECT_NE(parameter.path, "output/kernel");
    for (int64_t i = 0; i < parameter.count; ++i) {
      squares += std::pow(learner.gradients()[static_cast<size_t>(parameter.offset + i)], 2.0);
    }
  }
  EXPECT_NEAR(learner.GradientNorm(), std::sqrt(squares), 1e-9 * std::sqrt(squares));
}

TEST_F(ClipTest, LeavesSmallerGradientsAndAllIfItIsOff) {
  const std::vector<float> before = Copy(learner_.gradients());
  for (const double limit : {learner_.GradientNorm() * 1.001, 0.0}) {
    settings_.clip_norm = limit;
    learner_.Clip(learner_.GradientNorm());
    EXPECT_EQ(Copy(learner_.gradients()), before);
  }
}

TEST_F(ClipTest, AnInfiniteGradientStaysInfinite) {
  settings_.clip_norm = 1;
  const std::vector<float> before = Copy(learner_.gradients());
  learner_.Clip(std::numeric_limits<double>::infinity());
  learner_.Clip(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(Copy(learner_.gradients()), before);
}

TEST(Evaluate, IsTheLossOfTheSameBatchAndChangesNothing) {
  const TrainingSettings settings = SmallSettings();
  Batch batch;
  MakeDataSource(settings)->Next(batch);
  Learner learner(settings);
  const std::vector<float> weights = Copy(learner.weights());
  const double loss = learner.ComputeGradients(1, {&batch, 1});
  const std::vector<float> gradients = Copy(learner.gradients());
  EXPECT_DOUBLE_EQ(learner.Evaluate({&batch, 1}), loss);
  EXPECT_EQ(Copy(learner.weights()), weights);
  EXPECT_EQ(Copy(learner.gradients()), gradients);
  EXPECT_EQ(learner.ComputeGradients(1, {&batch, 1}), loss);
}

}  // namespace
}  // namespace normlab::trainer
