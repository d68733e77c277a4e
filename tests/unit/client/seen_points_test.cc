#include "client/seen_points.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace normlab::client {
namespace {

using ::testing::ElementsAre;

normlab::v1::WatchRunsResponse PointsOf(const std::string& run, int32_t attempt,
                                        const std::vector<int64_t>& steps) {
  normlab::v1::WatchRunsResponse event;
  event.mutable_points()->set_run(run);
  event.mutable_points()->set_attempt(attempt);
  for (const char* name : {"loss", "gradient_norm"}) {
    normlab::v1::Column& column = *event.mutable_points()->add_columns();
    column.set_name(name);
    for (const int64_t step : steps) {
      column.add_steps(step);
      column.add_values(static_cast<double>(step) / 2);
    }
  }
  return event;
}

TEST(SeenPointsTest, AHistoryThatStartsAgainGivesOnlyWhatWasNotSeen) {
  SeenPoints seen;
  auto first = PointsOf("a", 1, {1, 2, 3});
  EXPECT_TRUE(seen.Keep(first));
  EXPECT_EQ(first.points().columns(0).steps_size(), 3);
  auto again = PointsOf("a", 1, {1, 2});
  EXPECT_FALSE(seen.Keep(again));
  auto longer = PointsOf("a", 1, {2, 3, 4, 5});
  EXPECT_TRUE(seen.Keep(longer));
  for (const normlab::v1::Column& column : longer.points().columns()) {
    EXPECT_THAT(column.steps(), ElementsAre(4, 5));
    EXPECT_THAT(column.values(), ElementsAre(2, 2.5));
  }
}

TEST(SeenPointsTest, ANewAttemptMayRepeatStepsAndAnOldOneIsOver) {
  SeenPoints seen;
  auto old = PointsOf("a", 1, {1, 2, 3, 4});
  EXPECT_TRUE(seen.Keep(old));
  auto resumed = PointsOf("a", 2, {3, 4});
  EXPECT_TRUE(seen.Keep(resumed));
  EXPECT_THAT(resumed.points().columns(0).steps(), ElementsAre(3, 4));
  auto late = PointsOf("a", 1, {4, 5});
  EXPECT_FALSE(seen.Keep(late));
}

TEST(SeenPointsTest, ASeriesThatBeginsLateIsKeptAndRunsAreApart) {
  SeenPoints seen;
  auto first = PointsOf("a", 1, {1, 2});
  EXPECT_TRUE(seen.Keep(first));
  auto other = PointsOf("b", 1, {1, 2});
  EXPECT_TRUE(seen.Keep(other));
  auto mixed = PointsOf("a", 1, {3});
  mixed.mutable_points()->mutable_columns(1)->mutable_steps()->Set(0, 2);
  EXPECT_TRUE(seen.Keep(mixed));
  ASSERT_EQ(mixed.points().columns_size(), 1);
  EXPECT_EQ(mixed.points().columns(0).name(), "loss");
  normlab::v1::WatchRunsResponse heartbeat;
  heartbeat.mutable_heartbeat();
  EXPECT_TRUE(seen.Keep(heartbeat));
}

}  // namespace
}  // namespace normlab::client
