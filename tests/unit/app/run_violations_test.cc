#include "server/app/run_violations.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace normlab::app {
namespace {

using domain::FieldViolation;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(RunViolationsTest, AFaultThatRunsShareIsToldOnce) {
  RunViolations violations;
  EXPECT_TRUE(violations.empty());
  violations.Add(3, "heads=5", {{"spec.heads", "wrong"}, {"spec.steps", "too many"}});
  violations.Add(4, "heads=6", {});
  violations.Add(7, "heads=7", {{"spec.heads", "wrong"}});
  violations.Add(8, "", {{"device", "there is none"}});
  EXPECT_THAT(
      violations.Shown(),
      ElementsAre(
          FieldViolation{"experiment.runs[3].spec.heads", "wrong; run \"heads=5\" and 1 other"},
          FieldViolation{"experiment.runs[3].spec.steps", "too many; run \"heads=5\""},
          FieldViolation{"experiment.runs[8].device", "there is none"}));
  EXPECT_FALSE(violations.empty());
}

TEST(RunViolationsTest, ManyDifferentFaultsAreCutShortAndCounted) {
  RunViolations violations;
  EXPECT_THAT(violations.Shown(), IsEmpty());
  for (size_t i = 0; i < 1000; ++i) {
    violations.Add(i, "", {{"spec.heads", std::to_string(i) + " is wrong"}});
  }
  ASSERT_THAT(violations.Shown(), SizeIs(RunViolations::kMostShown + 1));
  EXPECT_EQ(violations.Shown().back(),
            (FieldViolation{"experiment.runs", "and 980 other faults of its runs"}));
}

}  // namespace
}  // namespace normlab::app
