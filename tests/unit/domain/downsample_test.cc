#include "server/domain/downsample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace normlab::domain {
namespace {

Curve Noise(size_t points) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  Curve curve;
  for (size_t i = 0; i < points; ++i) {
    curve.steps.push_back(static_cast<int64_t>(3 * i + 1));
    curve.values.push_back(normal(random));
  }
  return curve;
}

TEST(DownsampleTest, AShortCurveIsKeptWhole) {
  const Curve curve = Noise(100);
  EXPECT_EQ(Downsample(curve, 100).steps, curve.steps);
  EXPECT_EQ(Downsample(curve, 0).steps, curve.steps);
}

TEST(DownsampleTest, ASpikeInAMillionStepsIsAlwaysKept) {
  for (const size_t at :
       {size_t{0}, size_t{1}, size_t{123'456}, size_t{777'777}, size_t{999'999}}) {
    Curve curve = Noise(1'000'000);
    curve.values[at] = 1e9;
    const Curve drawn = Downsample(curve, 2000);
    EXPECT_LE(drawn.steps.size(), 2000u);
    const auto spike = std::find(drawn.values.begin(), drawn.values.end(), 1e9);
    ASSERT_NE(spike, drawn.values.end()) << at;
    EXPECT_EQ(drawn.steps[size_t(spike - drawn.values.begin())], curve.steps[at]);
  }
}

TEST(DownsampleTest, FirstLastExtremesAndOrderAreKept) {
  const Curve curve = Noise(54'321);
  for (const size_t bound : {size_t{1}, size_t{4}, size_t{5}, size_t{100}, size_t{5'000}}) {
    const Curve drawn = Downsample(curve, bound);
    EXPECT_LE(drawn.steps.size(), std::max<size_t>(bound, 4));
    EXPECT_EQ(drawn.steps.front(), curve.steps.front());
    EXPECT_EQ(drawn.steps.back(), curve.steps.back());
    EXPECT_EQ(*std::max_element(drawn.values.begin(), drawn.values.end()),
              *std::max_element(curve.values.begin(), curve.values.end()));
    EXPECT_EQ(*std::min_element(drawn.values.begin(), drawn.values.end()),
              *std::min_element(curve.values.begin(), curve.values.end()));
    EXPECT_TRUE(std::is_sorted(drawn.steps.begin(), drawn.steps.end()));
    EXPECT_EQ(std::adjacent_find(drawn.steps.begin(), drawn.steps.end()), drawn.steps.end());
  }
}

TEST(DownsampleTest, NonFinitePointsAreKeptAndCounted) {
  Curve curve = Noise(10'000);
  curve.values[5'000] = std::numeric_limits<double>::quiet_NaN();
  curve.values[7'000] = std::numeric_limits<double>::infinity();
  const CurveFacts facts = FactsOf(curve);
  EXPECT_EQ(facts.total_points, 10'000);
  EXPECT_EQ(facts.non_finite_points, 2);
  EXPECT_EQ(facts.first_non_finite_step, curve.steps[5'000]);
  const Curve drawn = Downsample(curve, 100);
  EXPECT_EQ(std::count_if(drawn.values.begin(), drawn.values.end(),
                          [](double v) { return !std::isfinite(v); }),
            2);
}

TEST(DownsampleTest, NothingGivesNothing) {
  EXPECT_TRUE(Downsample({}, 10).steps.empty());
  EXPECT_EQ(FactsOf({}).total_points, 0);
}

}  // namespace
}  // namespace normlab::domain
