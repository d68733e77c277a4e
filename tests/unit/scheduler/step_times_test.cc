#include "server/scheduler/step_times.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace normlab::scheduler {
namespace {

using ::testing::DoubleEq;
using ::testing::Optional;

TEST(StepTimesTest, NothingIsExpectedBeforeAnythingIsKnown) {
  StepTimes times;
  EXPECT_EQ(times.SecondsPerStep({false, 1, 1e9}), std::nullopt);
  times.Note({false, 1, 1e9}, 0, 10);  // ended before its first step
  EXPECT_EQ(times.SecondsPerStep({false, 1, 1e9}), std::nullopt);
}

TEST(StepTimesTest, TheLatestCountsMost) {
  StepTimes times;
  times.Note({false, 1, 1e9}, 100, 10);
  EXPECT_THAT(times.SecondsPerStep({false, 1, 1e9}), Optional(DoubleEq(0.1)));
  times.Note({false, 1, 1e9}, 100, 40);
  EXPECT_THAT(times.SecondsPerStep({false, 1, 1e9}), Optional(DoubleEq(0.3)));
}

TEST(StepTimesTest, SimilarOnesAreScaledAndOthersSayNothing) {
  StepTimes times;
  times.Note({false, 1, 1e9}, 100, 10);
  times.Note({false, 1, 3e9}, 100, 90);
  EXPECT_THAT(times.SecondsPerStep({false, 1, 1.5e9}), Optional(DoubleEq(0.15)));
  EXPECT_THAT(times.SecondsPerStep({false, 1, 2e9}), Optional(DoubleEq(0.6)));
  EXPECT_EQ(times.SecondsPerStep({false, 1, 7e9}), std::nullopt);
  EXPECT_EQ(times.SecondsPerStep({false, 2, 1e9}), std::nullopt);
  EXPECT_EQ(times.SecondsPerStep({true, 1, 1e9}), std::nullopt);
}

}  // namespace
}  // namespace normlab::scheduler
