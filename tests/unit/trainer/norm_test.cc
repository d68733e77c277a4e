// The values of the norms, by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "server/trainer/model/block.h"
#include "tests/unit/trainer/probe.h"

namespace normlab::trainer {
namespace {

// The run's norm as it starts, over one row (or several of `width`).
std::vector<float> Normed(const std::string& norm, double epsilon, const std::vector<float>& x,
                          int64_t width, bool gain = true) {
  TrainingSettings settings;
  settings.norm = norm;
  settings.norm_epsilon = epsilon;
  settings.norm_gain = gain;
  const auto rows = static_cast<int64_t>(x.size()) / width;
  Probe probe(1, rows, width, [&](Value value) { return RecordNorm(settings, "n", value); });
  for (const Parameter& parameter : probe.parameters().all()) {
    for (float& value : probe.weights(probe.parameters().Find(parameter.path))) {
      value = parameter.init.value;
    }
  }
  probe.set_input(x);
  probe.Run();
  return probe.output();
}

void ExpectRow(const std::vector<float>& actual, const std::vector<double>& expected,
               double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], tolerance) << i;
}

TEST(LayerNorm, EpsilonIsAddedToTheBiasedVarianceInsideTheRoot) {
  for (const bool gain : {true, false}) {
    const std::vector<float> small = {1e-3f, -1e-3f};
    ExpectRow(Normed("layernorm", 1e-6, small, 2, gain), {0.70711, -0.70711}, 5e-6);
    ExpectRow(Normed("layernorm", 1e-5, small, 2, gain), {0.30151, -0.30151}, 5e-6);
    const std::vector<float> one = {1, 0, 0, 0};
    ExpectRow(Normed("layernorm", 1e-6, one, 4, gain), {1.73205, -0.57735, -0.57735, -0.57735},
              6e-6);
    ExpectRow(Normed("layernorm", 1e-5, one, 4, gain), {1.73200, -0.57733, -0.57733, -0.57733},
              6e-6);
  }
}

TEST(LayerNorm, VarianceSurvivesALargeCommonOffset) {
  std::vector<float> x = RandomValues(4 * 256, 9);
  for (float& value : x) value += 2000;
  const std::vector<float> y = Normed("layernorm", 1e-6, x, 256);
  for (size_t row = 0; row < 4; ++row) {
    double squares = 0;
    for (size_t c = 0; c < 256; ++c) squares += std::pow(y[row * 256 + c], 2.0);
    EXPECT_NEAR(squares / 256, 1.0, 1e-2);
  }
}

TEST(RmsNorm, DividesByTheRootOfTheMeanSquare) {
  for (const bool gain : {true, false}) {
    ExpectRow(Normed("rmsnorm", 1e-6, {1, 2, 3, 4}, 4, gain),
              {0.365148, 0.730297, 1.095445, 1.460593}, 1e-6);
  }
}

TEST(RmsNorm, ARowOfZerosStaysZero) {
  EXPECT_EQ(Normed("rmsnorm", 1e-6, {0, 0, 0, 0}, 4), std::vector<float>(4, 0.0f));
}

TEST(DyT, IsTheHyperbolicTangentOfAlphaX) {
  for (const bool gain : {true, false}) {
    ExpectRow(Normed("dyt", 1e-6, {2, -2, 0, 1}, 4, gain), {0.761594, -0.761594, 0, 0.462117},
              1e-6);
  }
}

TEST(DyT, HasOneAlphaAndStartsItWhereTheSettingSays) {
  TrainingSettings settings;
  settings.norm = "dyt";
  settings.dyt_alpha = 0.8;
  Probe probe(1, 1, 4, [&](Value value) { return RecordNorm(settings, "n", value); });
  const ParameterTable& parameters = probe.parameters();
  EXPECT_EQ(parameters.parameter_count(), 1 + 4 + 4);
  EXPECT_EQ(parameters[parameters.Find("n/alpha")].init.value, 0.8f);
}

TEST(Norms, KeepNotANumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* norm : {"layernorm", "rmsnorm", "dyt"}) {
    EXPECT_TRUE(std::isnan(Normed(norm, 1e-6, {1, nan, 2, 3}, 4)[1])) << norm;
  }
}

}  // namespace
}  // namespace normlab::trainer
