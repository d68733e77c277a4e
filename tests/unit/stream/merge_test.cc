#include "server/stream/merge.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace normlab::stream {
namespace {

using domain::EventPtr;
using ::testing::ElementsAre;

EventPtr PointsEvent(uint64_t sequence, int32_t attempt, int64_t step,
                     const std::vector<std::string>& names = {"loss"}, int points = 1) {
  v1::WatchRunsResponse message;
  message.mutable_points()->set_run("a");
  message.mutable_points()->set_attempt(attempt);
  for (const std::string& name : names) {
    v1::Column& column = *message.mutable_points()->add_columns();
    column.set_name(name);
    for (int i = 0; i < points; ++i) {
      column.add_steps(step + i);
      column.add_values(double(step + i) / 2);
    }
  }
  return std::make_shared<domain::Event>(sequence, "a", message);
}
EventPtr RunEvent(uint64_t sequence) {
  v1::WatchRunsResponse message;
  message.mutable_run()->set_id("a");
  return std::make_shared<domain::Event>(sequence, "a", message);
}

TEST(MergerTest, PointsOfOneAttemptSideBySideBecomeOneEventWithTheLastSequence) {
  Merger merger;
  const auto merged = merger.Merge({PointsEvent(1, 1, 1), PointsEvent(2, 1, 2, {"loss", "norm"}),
                                    PointsEvent(5, 1, 3, {"norm"})});
  ASSERT_EQ(merged.size(), 1u);
  EXPECT_EQ(merged[0]->sequence(), 5u);
  const v1::Points& points = merged[0]->message().points();
  EXPECT_EQ(points.run(), "a");
  EXPECT_EQ(points.attempt(), 1);
  ASSERT_EQ(points.columns_size(), 2);
  EXPECT_THAT(points.columns(0).steps(), ElementsAre(1, 2));
  EXPECT_THAT(points.columns(0).values(), ElementsAre(0.5, 1));
  EXPECT_EQ(points.columns(1).name(), "norm");
  EXPECT_THAT(points.columns(1).steps(), ElementsAre(2, 3));
}

TEST(MergerTest, OtherEventsAndOtherAttemptsKeepTheirPlaces) {
  Merger merger;
  const std::vector<EventPtr> events = {PointsEvent(1, 1, 1), RunEvent(2), PointsEvent(3, 1, 2),
                                        PointsEvent(4, 2, 2), RunEvent(4)};
  EXPECT_EQ(merger.Merge(events), events);
  EXPECT_TRUE(merger.Merge({}).empty());
}

TEST(MergerTest, WatchersAtTheSamePlaceShareTheMergedEvent) {
  Merger merger;
  const std::vector<EventPtr> events = {PointsEvent(1, 1, 1), PointsEvent(2, 1, 2),
                                        PointsEvent(3, 1, 3)};
  const auto whole = merger.Merge(events);
  const auto rest = merger.Merge({events[1], events[2]});
  EXPECT_EQ(merger.Merge(events), whole);
  EXPECT_EQ(merger.Merge({events[1], events[2]}), rest);
  EXPECT_NE(whole, rest);
}

TEST(MergerTest, AMergedEventIsBounded) {
  Merger merger;
  std::vector<EventPtr> events;
  for (int i = 0; i < 10; ++i) {
    events.push_back(PointsEvent(uint64_t(i + 1), 1, 1 + i * 1000, {"loss"}, 1000));
  }
  const auto merged = merger.Merge(events);
  ASSERT_EQ(merged.size(), 3u);
  EXPECT_EQ(merged[0]->message().points().columns(0).steps_size(), 4000);
  EXPECT_EQ(merged[2]->message().points().columns(0).steps_size(), 2000);
  EXPECT_EQ(merged[2]->sequence(), 10u);
}

}  // namespace
}  // namespace normlab::stream
