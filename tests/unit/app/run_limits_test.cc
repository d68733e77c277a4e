#include "server/app/run_limits.h"

#include <gtest/gtest.h>

#include "server/app/after_attempt.h"

namespace normlab::app {
namespace {

using storage::AttemptRow;

AttemptRow Attempt(int32_t number, double seconds, int64_t resumed_from = 0) {
  AttemptRow row;
  row.number = number;
  row.run_seconds = seconds;
  row.resumed_from_step = resumed_from;
  return row;
}

TEST(RunLimitsTest, SecondsOfAllAttemptsCountSinceSomebodyHadItTriedAgain) {
  v1::RunSpec spec;
  spec.set_time_limit(60);
  const std::vector<AttemptRow> attempts = {Attempt(1, 40), Attempt(2, 25), Attempt(3, 10)};
  EXPECT_EQ(SecondsLeft(spec, attempts, 0), -15);
  EXPECT_EQ(SecondsLeft(spec, attempts, 2), 50);
  EXPECT_EQ(SecondsLeft(spec, {}, 0), 60);
  spec.set_time_limit(0);
  EXPECT_EQ(SecondsLeft(spec, attempts, 0), std::nullopt);
}

TEST(RunLimitsTest, AStepLimitIsThatStepAndTheNextMultipleForOneThatHadComeToIt) {
  v1::RunSpec spec;
  EXPECT_EQ(StepLimit(spec, {Attempt(1, 0)}, 0), 0);
  spec.set_step_limit(100);
  EXPECT_EQ(StepLimit(spec, {}, 0), 100);
  EXPECT_EQ(StepLimit(spec, {Attempt(1, 0), Attempt(2, 0, 60)}, 0), 100);
  EXPECT_EQ(StepLimit(spec, {Attempt(1, 0), Attempt(2, 0, 60)}, 1), 100) << "it failed before";
  EXPECT_EQ(StepLimit(spec, {Attempt(1, 0), Attempt(2, 0, 100)}, 1), 200);
  EXPECT_EQ(StepLimit(spec, {Attempt(1, 0), Attempt(2, 0, 100), Attempt(3, 0, 150)}, 1), 200)
      << "by itself it gets nothing new";
  EXPECT_EQ(StepLimit(spec, {Attempt(1, 0), Attempt(2, 0, 0)}, 1), 100) << "from the start";
}

TEST(RunLimitsTest, PausesAfterFaultsDoubleUpToTenMinutes) {
  EXPECT_EQ(PauseAfterFault(0).count(), 10);
  EXPECT_EQ(PauseAfterFault(1).count(), 20);
  EXPECT_EQ(PauseAfterFault(5).count(), 320);
  EXPECT_EQ(PauseAfterFault(6).count(), 600);
  EXPECT_EQ(PauseAfterFault(99).count(), 600);
}

}  // namespace
}  // namespace normlab::app
