#include "server/stream/hub.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace normlab::stream {
namespace {

using ::testing::ElementsAre;

domain::EventPtr PointsEvent(uint64_t sequence, const std::string& run) {
  v1::WatchRunsResponse message;
  message.mutable_points()->set_run(run);
  return std::make_shared<domain::Event>(sequence, run, message);
}
domain::EventPtr EndEvent(uint64_t sequence, const std::string& run) {
  v1::WatchRunsResponse message;
  message.mutable_end();
  return std::make_shared<domain::Event>(sequence, run, message);
}
std::vector<uint64_t> Sequences(const Hub::Reading& reading) {
  std::vector<uint64_t> sequences;
  for (const auto& event : reading.events) sequences.push_back(event->sequence());
  return sequences;
}

TEST(HubTest, ReadsWhatCameAfterTheCursor) {
  Hub hub(10);
  hub.Publish({PointsEvent(11, "a"), PointsEvent(12, "b"), PointsEvent(13, "a")}, 13);
  EXPECT_THAT(Sequences(hub.Read("a", 10, 100)), ElementsAre(11, 13));
  EXPECT_THAT(Sequences(hub.Read("a", 11, 100)), ElementsAre(13));
  EXPECT_EQ(hub.Read("a", 11, 100).published, 13u);
}

TEST(HubTest, WhatCameBeforeTheHubIsBehind) {
  Hub hub(10);
  EXPECT_TRUE(hub.Read("a", 9, 100).behind);
  EXPECT_FALSE(hub.Read("a", 10, 100).behind);
}

TEST(HubTest, ALimitNeverCutsOneWriteApart) {
  Hub hub(0);
  hub.Publish({PointsEvent(1, "a"), PointsEvent(1, "a"), PointsEvent(2, "a")}, 2);
  const Hub::Reading reading = hub.Read("a", 0, 1);
  EXPECT_THAT(Sequences(reading), ElementsAre(1, 1));
  EXPECT_TRUE(reading.more);
}

TEST(HubTest, ASlowReaderIsSentToTheDatabaseAndMemoryIsBounded) {
  Hub hub(0);
  for (uint64_t sequence = 1; sequence <= 10'000; ++sequence) {
    hub.Publish({PointsEvent(sequence, "a")}, sequence);
  }
  EXPECT_TRUE(hub.Read("a", 1, 100).behind);
  EXPECT_LT(hub.Read("a", 9'000, 1'000'000).events.size(), 1001u);
}

TEST(HubTest, LargeEventsAreFewerSoThatMemoryIsBounded) {
  Hub hub(0);
  v1::WatchRunsResponse message;
  v1::Column& column = *message.mutable_points()->add_columns();
  for (int i = 0; i < 4'000; ++i) column.add_values(i);
  for (uint64_t sequence = 1; sequence <= 1'000; ++sequence) {
    hub.Publish({std::make_shared<domain::Event>(sequence, "a", message)}, sequence);
  }
  EXPECT_TRUE(hub.Read("a", 900, 100).behind);
  size_t bytes = 0;
  for (const auto& event : hub.Read("a", 990, 100).events) bytes += event->bytes();
  EXPECT_GT(bytes, 10 * 4'000 * sizeof(double)) << "the latest are there";
  EXPECT_LT(bytes, Hub::kKeptBytes);
}

TEST(HubTest, AnEndedRunIsLeftToTheDatabaseOnceNobodyWatches) {
  Hub hub(0);
  const int64_t watcher = hub.Subscribe({"a"}, [] {});
  hub.Publish({PointsEvent(1, "a"), EndEvent(2, "a")}, 2);
  EXPECT_THAT(Sequences(hub.Read("a", 0, 100)), ElementsAre(1, 2));
  hub.Unsubscribe(watcher);
  EXPECT_TRUE(hub.Read("a", 0, 100).behind);
  EXPECT_TRUE(hub.Read("a", 2, 100).events.empty());
  EXPECT_FALSE(hub.Read("a", 2, 100).behind);
}

TEST(HubTest, RingsTheBellsOfWatchersOfThatRunOnlyAndOnceACommit) {
  Hub hub(0);
  int a = 0, b = 0;
  hub.Subscribe({"a"}, [&] { ++a; });
  const int64_t watcher = hub.Subscribe({"b"}, [&] { ++b; });
  hub.Publish({PointsEvent(1, "a"), PointsEvent(2, "a")}, 2);
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, 0);
  hub.Unsubscribe(watcher);
  hub.Publish({PointsEvent(3, "b")}, 3);
  EXPECT_EQ(b, 0);
}

TEST(HubTest, TheLobbyHearsStatesOfAllRunsAndNoPoints) {
  Hub hub(0);
  hub.Publish({PointsEvent(1, "a"), EndEvent(2, "a"), EndEvent(3, "b")}, 3);
  EXPECT_THAT(Sequences(hub.Read(kLobby, 0, 100)), ElementsAre(2, 3));
}

}  // namespace
}  // namespace normlab::stream
