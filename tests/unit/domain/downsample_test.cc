#include "server/domain/downsample.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/non_finite.h"

namespace normlab::domain {
namespace {

using ::testing::ElementsAre;

Block BlockOf(const std::vector<double>& values, int64_t first_step = 1) {
  Block block;
  for (const double value : values) AddPoint(block, {first_step++, value});
  return block;
}

Curve KeptOf(const Block& block) {
  Curve curve;
  AppendKept(block, curve);
  return curve;
}

TEST(DownsampleTest, FirstLastLowestHighestAndFirstNonFiniteAreKeptInOrder) {
  const Block block = BlockOf({3, 5, 9, 4, kInfinity, kNan, 1, 2});
  EXPECT_EQ(block.points, 8);
  EXPECT_EQ(block.non_finite, 2);
  const Curve kept = KeptOf(block);
  EXPECT_THAT(kept.steps, ElementsAre(1, 3, 5, 7, 8));
  EXPECT_THAT(kept.values, ElementsAre(3, 9, kInfinity, 1, 2));
}

TEST(DownsampleTest, OfEqualValuesTheEarliestIsKept) {
  EXPECT_THAT(KeptOf(BlockOf({5, 1, 7, 1, 7, 5})).steps, ElementsAre(1, 2, 3, 6));
}

TEST(DownsampleTest, APointIsKeptOnce) {
  EXPECT_THAT(KeptOf(BlockOf({4})).steps, ElementsAre(1));
  EXPECT_THAT(KeptOf(BlockOf({4, 4})).steps, ElementsAre(1, 2));
  EXPECT_THAT(KeptOf(BlockOf({kNan})).steps, ElementsAre(1));
  EXPECT_TRUE(KeptOf({}).steps.empty());
}

TEST(DownsampleTest, WithoutAFinitePointThereIsNoLowestAndNoHighest) {
  const Block block = BlockOf({-kInfinity, kNan, kInfinity});
  EXPECT_FALSE(block.lowest.has_value());
  EXPECT_FALSE(block.highest.has_value());
  EXPECT_EQ(block.first_bad->value, -kInfinity);
  EXPECT_EQ(block.non_finite, 3);
}

TEST(DownsampleTest, BlocksAppendedAreTheBlockOfAllTheirPoints) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    Block whole, joined, piece;
    const int64_t points = static_cast<int64_t>(random() % 60);
    for (int64_t step = 1; step <= points; ++step) {
      const uint32_t choice = random() % 12;
      const double value = choice == 0   ? kNan
                           : choice == 1 ? kInfinity
                           : choice == 2 ? -kInfinity
                                         : static_cast<double>(random() % 9) - 4;
      AddPoint(whole, {step, value});
      AddPoint(piece, {step, value});
      if (random() % 4 == 0) {
        AppendBlock(joined, piece);
        piece = {};
      }
    }
    AppendBlock(joined, piece);
    EXPECT_EQ(joined.points, whole.points);
    EXPECT_EQ(joined.non_finite, whole.non_finite);
    const Curve kept = KeptOf(joined), expected = KeptOf(whole);
    EXPECT_EQ(kept.steps, expected.steps);
    ASSERT_EQ(kept.values.size(), expected.values.size());
    for (size_t i = 0; i < kept.values.size(); ++i) {
      EXPECT_TRUE(kept.values[i] == expected.values[i] ||
                  (std::isnan(kept.values[i]) && std::isnan(expected.values[i])));
    }
  }
}

}  // namespace
}  // namespace normlab::domain
