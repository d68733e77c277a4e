#include "server/trainer/model/components/switch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "server/trainer/model/components/components.h"
#include "server/trainer/train/learner.h"
#include "tests/unit/trainer/model_run.h"

namespace normlab::trainer {
namespace {

TEST(Switch, CapacityIsRoundedDownAndNeverMoreThanAllTokens) {
  EXPECT_EQ(SwitchCapacity(1.2, 2048, 4), 614);
  EXPECT_EQ(SwitchCapacity(1, 8, 4), 2);
  EXPECT_EQ(SwitchCapacity(3, 8, 2), 8);
  EXPECT_EQ(SwitchCapacity(0.1, 8, 4), 0);
}

// A layer over one column with given router logits, whose expert e doubles its input e + 1 times.
class Layer {
 public:
  Layer(const SwitchOptions& options, const std::vector<float>& logits)
      : rows_(static_cast<int64_t>(logits.size()) / options.experts), program_(table_, 1, rows_) {
    const Value logits_value = program_.NewValue(options.experts);
    Record<Source>(program_, logits, logits_value, &logits_gradient_);
    const Value x = program_.NewValue(1);
    std::vector<float> ones(static_cast<size_t>(rows_), 1.0f);
    Record<Source>(program_, ones, x, &x_gradient_);
    y_ = SwitchLayer(options, logits_value, x, [](int64_t e, Value inputs) {
      Value y = inputs + inputs;
      for (int64_t i = 0; i < e; ++i) y = y + y;
      return y;
    });
    Record<Sink>(program_, ones, y_);
    program_.Finish(nullptr, nullptr);
    program_.Forward();
    program_.Backward();
  }

  std::vector<float> output() {
    const float* y = program_.Data(y_);
    return {y, y + rows_};
  }
  double balance_loss() const { return program_.balance_loss(); }
  const std::vector<float>& logits_gradient() const { return logits_gradient_; }
  const std::vector<float>& x_gradient() const { return x_gradient_; }

 private:
  const int64_t rows_;
  ParameterTable table_;
  Program program_;
  Value y_;
  std::vector<float> logits_gradient_;
  std::vector<float> x_gradient_;
};

// Logits that give the chosen of four experts .7 and the others .1.
std::vector<float> Choosing(const std::vector<int>& experts) {
  std::vector<float> logits(experts.size() * 4, 0.0f);
  for (size_t row = 0; row < experts.size(); ++row) {
    logits[row * 4 + static_cast<size_t>(experts[row])] = std::log(7.0f);
  }
  return logits;
}

TEST(Switch, BalanceLossIsOneWhenBalancedAndGrowsWhenNot) {
  const SwitchOptions options = {.experts = 4, .capacity = 8};
  EXPECT_NEAR(Layer(options, Choosing({0, 1, 2, 3, 0, 1, 2, 3})).balance_loss(), 1.0, 1e-6);
  EXPECT_NEAR(Layer(options, Choosing({2, 2, 2, 2, 2, 2, 2, 2})).balance_loss(), 2.8, 1e-6);
  // Counted before dropping.
  const SwitchOptions tight = {.experts = 4, .capacity = 1};
  EXPECT_NEAR(Layer(tight, Choosing({2, 2, 2, 2, 2, 2, 2, 2})).balance_loss(), 2.8, 1e-6);
}

TEST(Switch, AnExpertTakesTheFirstTokensAndItsOutputIsScaled) {
  const std::vector<float> logits = Choosing({1, 1, 0, 1});
  const std::vector<float> dropped = Layer({.experts = 4, .capacity = 2}, logits).output();
  EXPECT_NEAR(dropped[0], 0.7 * 4, 1e-6);
  EXPECT_NEAR(dropped[1], 0.7 * 4, 1e-6);
  EXPECT_NEAR(dropped[2], 0.7 * 2, 1e-6);
  EXPECT_EQ(dropped[3], 0.0f);
  Layer passing({.experts = 4, .capacity = 2, .pass = true}, logits);
  EXPECT_NEAR(passing.output()[1], 0.7 * 4, 1e-6);
  EXPECT_NEAR(passing.output()[3], 0.7, 1e-6);
  // Back: p times what the token went through; p(1 - p) times it by its own logit.
  EXPECT_NEAR(passing.x_gradient()[0], 0.7 * 4, 1e-6);
  EXPECT_NEAR(passing.x_gradient()[3], 0.7, 1e-6);
  EXPECT_NEAR(passing.logits_gradient()[1], 4 * 0.7 * 0.3, 1e-6);
  EXPECT_NEAR(passing.logits_gradient()[0], -4 * 0.7 * 0.1, 1e-6);
}

TEST(Switch, TheBalanceLossPushesAwayFromAFullExpert) {
  const SwitchOptions options = {.experts = 4, .capacity = 1, .balance_coefficient = 0.5};
  Layer layer(options, Choosing({2, 2, 2, 2}));
  // A dropped row feels the balance loss alone: 0.5 * 4 * f_e / 4 = 0.5 for p_2, through softmax.
  const std::vector<float>& gradient = layer.logits_gradient();
  EXPECT_NEAR(gradient[3 * 4 + 2], 0.5 * 0.7 * 0.3, 1e-6);
  EXPECT_NEAR(gradient[3 * 4 + 0], -0.5 * 0.7 * 0.1, 1e-6);
}

TEST(Switch, OneExpertWithRoomForAllIsTheDenseLayer) {
  TrainingSettings dense_settings = SmallModel();
  TrainingSettings switch_settings = dense_settings;
  switch_settings.ffn = "switch";
  switch_settings.experts = 1;
  switch_settings.capacity_factor = 1;
  ModelRun dense(dense_settings);
  ModelRun one(switch_settings);
  for (const Parameter& p : dense.table().all()) {
    std::string path = p.path;
    if (const auto at = path.find("/mlp_"); at != std::string::npos && !path.ends_with("scale") &&
                                            path.find("norm") == std::string::npos) {
      path.insert(at, "/expert_0");
    }
    std::ranges::copy(dense.weights(p.path), one.weights(path).begin());
  }
  EXPECT_EQ(one.ForwardAndBack(), dense.ForwardAndBack());
  EXPECT_EQ(one.program().loss(), dense.program().loss());
  EXPECT_TRUE(std::ranges::equal(one.gradient("block_0/expert_0/mlp_in/kernel"),
                                 dense.gradient("block_0/mlp_in/kernel")));
}

TEST(Switch, ThreadsDoNotDivideTheBatchThatTheExpertsShare) {
  TrainingSettings settings = SmallModel();
  settings.ffn = "switch";
  settings.threads = 3;
  const Learner learner(settings);
  EXPECT_EQ(learner.share_count(), 1u);
}

TEST(Switch, TheBalanceLossOfAStepIsThatOfItsBatchesOnAverage) {
  TrainingSettings settings = SmallModel();
  settings.ffn = "switch";
  Learner learner(settings);
  const auto batch_of = [&](int32_t factor) {
    Batch batch;
    for (int32_t i = 0; i < 21; ++i) {
      batch.tokens.push_back(i * factor % 11);
      batch.targets.push_back(i % 11);
    }
    return batch;
  };
  const std::vector<Batch> batches = {batch_of(3), batch_of(0)};
  learner.ComputeGradients(1, std::span(batches).first(1));
  const double first = learner.balance_loss();
  learner.ComputeGradients(1, std::span(batches).last(1));
  const double second = learner.balance_loss();
  EXPECT_NE(first, second);
  EXPECT_GE(first, 2 * 0.9);  // two layers, each 1 when balanced
  learner.ComputeGradients(1, batches);
  EXPECT_NEAR(learner.balance_loss(), (first + second) / 2, 1e-9);
}

}  // namespace
}  // namespace normlab::trainer
