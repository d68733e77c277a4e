#include "server/trainer/train/probes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"
#include "tests/unit/trainer/probe.h"

namespace normlab::trainer {
namespace {

TEST(AngularDistance, OfTheSameOrthogonalAndOppositeVectors) {
  const std::vector<float> a = {1, 2, 3, 4};
  const std::vector<float> same = {2, 4, 6, 8};
  const std::vector<float> orthogonal = {2, -1, 4, -3};
  const std::vector<float> opposite = {-1, -2, -3, -4};
  EXPECT_NEAR(AngularDistance(a.data(), same.data(), 1, 4), 0.0, 1e-8);
  EXPECT_DOUBLE_EQ(AngularDistance(a.data(), orthogonal.data(), 1, 4), 0.5);
  EXPECT_NEAR(AngularDistance(a.data(), opposite.data(), 1, 4), 1.0, 1e-8);
}

TEST(MeasureAttention, EqualScoresGiveTheCausalCeiling) {
  for (const auto& [time, ceiling] : {std::pair(32, 2.5487), std::pair(16, 1.9170)}) {
    const std::vector<float> qkv(static_cast<size_t>(2 * time * 3 * 8), 0.0f);
    const AttentionStatistics causal = MeasureAttention(qkv.data(), 2, time, 8, 2, true);
    EXPECT_NEAR(causal.entropy, ceiling, 5e-5);
    EXPECT_EQ(causal.max_score, 0);
    const AttentionStatistics full = MeasureAttention(qkv.data(), 2, time, 8, 2, false);
    EXPECT_NEAR(full.entropy, std::log(static_cast<double>(time)), 1e-12);
  }
}

// Two positions, one head of width 4: the second's scores are 2 and 6, its probabilities 1 / (1 +
// e^4) and the rest.
TEST(MeasureAttention, OfScoresByHand) {
  std::vector<float> qkv(2 * 12, 0.0f);
  qkv[12] = 4;  // q of the second position
  qkv[4] = 1;   // k of the first
  qkv[16] = 3;  // k of the second
  const AttentionStatistics measured = MeasureAttention(qkv.data(), 1, 2, 4, 1, true);
  const double p = 1 / (1 + std::exp(4.0));
  EXPECT_NEAR(measured.entropy, -(p * std::log(p) + (1 - p) * std::log(1 - p)) / 2, 1e-12);
  EXPECT_DOUBLE_EQ(measured.max_score, 6);
}

// A part of a model between an input and a gradient, with weights of its own.
struct Gauged {
  template <typename Part>
  Gauged(int64_t batch, int64_t time, int64_t width, const Part& part) {
    {  // The parameters have to be known before the buffer can be made.
      Program program(parameters, batch, time);
      part(program.NewValue(width));
    }
    weights = Buffer(parameters.buffer_size());
    gradients = Buffer(parameters.buffer_size());
    gauge = std::make_unique<BlockGauge>(parameters, weights.data(), gradients.data(), batch, time,
                                         width, part);
  }

  std::span<float> Weights(ParameterTable::Id id) {
    return weights.span().subspan(static_cast<size_t>(parameters[id].offset),
                                  static_cast<size_t>(parameters[id].count));
  }
  // Branches that return 0, norms with gain 1.
  void ClearBranches() {
    for (size_t i = 0; i < parameters.all().size(); ++i) {
      const auto id = static_cast<ParameterTable::Id>(i);
      std::ranges::fill(Weights(id), parameters[id].path.ends_with("/scale") ? 1.0f : 0.0f);
    }
  }

  ParameterTable parameters;
  Buffer weights;
  Buffer gradients;
  std::unique_ptr<BlockGauge> gauge;
};

TEST(BlockGauge, OfAMatrixItsLargestSingularValue) {
  Gauged gauged(2, 3, 4, [](Value x) { return Linear("l", 4, Role::kInput, false, x); });
  const float diagonal[] = {0.5f, -3.0f, 2.0f, 1.0f};
  for (size_t i = 0; i < 4; ++i) gauged.Weights(0)[i * 4 + i] = diagonal[i];
  const JacobianGauge measured = gauged.gauge->Measure(RandomValues(24, 5), 7);
  EXPECT_NEAR(measured.largest, 3.0, 1e-4);
  EXPECT_LT(measured.gain, 3.0);
  EXPECT_GT(measured.gain, 0.5);
}

TEST(BlockGauge, PreWithZeroBranchesIsTheIdentityExactly) {
  const TrainingSettings settings;
  Gauged gauged(2, 8, 64,
                [&](Value x) { return FindPlacement("pre").RecordBlock(Block(settings, 0), x); });
  gauged.ClearBranches();
  const JacobianGauge measured = gauged.gauge->Measure(RandomValues(2 * 8 * 64, 5), 7);
  EXPECT_DOUBLE_EQ(measured.gain, 1.0);
  EXPECT_EQ(measured.distance, 0.0);
  EXPECT_NEAR(measured.largest, 1.0, 1e-6);
}

// With zero branches post-single is one norm: J = (I - 11^T/d - hh^T/d) / sigma, of rank d - 2.
TEST(BlockGauge, PostWithZeroBranchesIsTheJacobianOfTheNorm) {
  constexpr size_t kWidth = 16;
  TrainingSettings settings;
  settings.norm_epsilon = 1e-12;
  Gauged gauged(1, 1, kWidth, [&](Value x) { return LayerNorm("n", 1e-12, x); });
  gauged.ClearBranches();
  const std::vector<float> x = RandomValues(kWidth, 5, 0.25f);
  double mean = 0;
  for (const float value : x) mean += value / kWidth;
  double variance = 0;
  for (const float value : x) variance += (value - mean) * (value - mean) / kWidth;
  const double sigma = std::sqrt(variance);

  double trace = 0;  // of J sigma, a projection: its rank
  for (size_t i = 0; i < kWidth; ++i) {
    std::vector<float> unit(kWidth, 0.0f);
    unit[i] = 1;
    const std::vector<float> row = gauged.gauge->TransposedProduct(x, unit);
    trace += row[i] * sigma;
    for (size_t j = 0; j < kWidth; ++j) {
      const double h_i = (x[i] - mean) / sigma;
      const double h_j = (x[j] - mean) / sigma;
      const double expected = ((i == j ? 1.0 : 0.0) - (1 + h_i * h_j) / kWidth) / sigma;
      EXPECT_NEAR(row[j], expected, 1e-5 / sigma);
    }
  }
  EXPECT_NEAR(trace, kWidth - 2.0, 1e-4);
  EXPECT_NEAR(gauged.gauge->Measure(x, 7).largest, 1 / sigma, 1e-4 / sigma);
}

}  // namespace
}  // namespace normlab::trainer
