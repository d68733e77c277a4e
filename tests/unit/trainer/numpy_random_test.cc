#include "server/trainer/train/numpy_random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace normlab::trainer {
namespace {

using testing::ElementsAre;

std::vector<uint32_t> Draw(uint64_t seed, uint32_t n, int count) {
  NumpyRandom random(seed);
  std::vector<uint32_t> draws;
  for (int i = 0; i < count; ++i) draws.push_back(random.Below(n));
  return draws;
}

TEST(NumpyRandom, MatchesNumpysRawOutput) {
  NumpyRandom random(123);
  EXPECT_EQ(random.Next64(), 0xaeae9c9903f3e9cdu);
  EXPECT_EQ(random.Next64(), 0x0dc736db97cb6d23u);
}

TEST(NumpyRandom, MatchesNumpysBoundedIntegers) {
  EXPECT_THAT(Draw(123, 64, 24), ElementsAre(0, 43, 37, 3, 58, 14, 16, 11, 21, 11, 22, 51, 28, 59,
                                             28, 17, 50, 52, 55, 56, 1, 32, 17, 15));
  EXPECT_THAT(Draw(116, 50, 24), ElementsAre(11, 8, 25, 43, 10, 47, 40, 47, 11, 25, 5, 29, 16, 15,
                                             46, 27, 47, 15, 30, 25, 36, 15, 32, 8));
  EXPECT_THAT(Draw((uint64_t{1} << 32) + 5 + 116, 1000, 24),
              ElementsAre(571, 708, 30, 385, 270, 427, 361, 881, 896, 40, 908, 372, 758, 611, 5,
                          693, 679, 555, 490, 565, 771, 529, 3, 527));
}

TEST(NumpyRandom, TheLowHalfOfADrawComesBeforeTheHighHalf) {
  NumpyRandom random(123);
  EXPECT_EQ(random.Next32(), 0x03f3e9cdu);
  EXPECT_EQ(random.Next32(), 0xaeae9c99u);
  EXPECT_EQ(random.Next32(), 0x97cb6d23u);
}

TEST(NumpyRandom, ACopyContinuesWithThePendingHalf) {
  NumpyRandom random(123);
  random.Next32();
  NumpyRandom copy = random;
  EXPECT_EQ(copy.Next32(), random.Next32());
  EXPECT_EQ(copy.Next64(), random.Next64());
}

TEST(NumpyRandom, UniformIsNumpysRandom) {
  NumpyRandom random(123);
  EXPECT_EQ(random.Uniform(), 0.6823518632481435);
  EXPECT_EQ(random.Uniform(), 0.053821018802222675);
}

TEST(NumpyRandom, ARestoredStateContinuesWithThePendingHalf) {
  NumpyRandom random(123);
  random.Next32();
  NumpyRandom other(4);
  other.Restore(random.Save());
  EXPECT_EQ(other.Next32(), random.Next32());
  EXPECT_EQ(other.Next64(), random.Next64());
  other.Restore(random.Save());  // nothing pending
  EXPECT_EQ(other.Next32(), random.Next32());
}

TEST(NumpyRandom, OnePossibleResultConsumesNothing) {
  NumpyRandom random(123);
  EXPECT_EQ(random.Below(1), 0u);
  EXPECT_EQ(random.Next64(), 0xaeae9c9903f3e9cdu);
}

TEST(NumpyRandom, EveryResultBelowTheBoundIsReached) {
  std::vector<int> seen(3);
  for (const uint32_t draw : Draw(1, 3, 300)) ++seen[draw];
  for (const int count : seen) EXPECT_GT(count, 50);
}

}  // namespace
}  // namespace normlab::trainer
