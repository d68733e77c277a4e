#include "server/scheduler/forecast.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/strings.h"
#include "tests/unit/scheduler/snapshots.h"

namespace normlab::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

std::vector<std::string> Lines(const Snapshot& snapshot) {
  std::vector<std::string> lines;
  for (const Waiting& waiting : MakeForecast(snapshot)) {
    lines.push_back(StrCat(waiting.position, " ", waiting.run, ": ", ReasonWithTime(waiting)));
  }
  return lines;
}

TEST(ForecastTest, NamesTheRunWhoseDeviceItWillHave) {
  Snapshot snapshot;
  AddSlots(snapshot, 2);
  Hold(snapshot, {.run = "x", .name = "long"}, {"cpu:0"}, {.remaining_seconds = 1000});
  Hold(snapshot, {.run = "y", .name = "short"}, {"cpu:1"}, {.remaining_seconds = 240});
  snapshot.queue = {{.id = "1", .expected_seconds = 60}, {.id = "2", .expected_seconds = 60}};
  EXPECT_THAT(Lines(snapshot), ElementsAre("1 1: waits for run short on cpu:1, about 4 min",
                                           "2 2: waits its turn behind 1 run, about 5 min"));
}

TEST(ForecastTest, CountsTheRunsOfHigherPriority) {
  Snapshot snapshot;
  AddSlots(snapshot, 1);
  Hold(snapshot, {.run = "x", .name = "x"}, {"cpu:0"}, {.remaining_seconds = 10});
  snapshot.queue = {{.id = "1", .priority = 0, .expected_seconds = 60},
                    {.id = "2", .priority = 1, .expected_seconds = 10},
                    {.id = "3", .priority = 1, .expected_seconds = 10}};
  EXPECT_THAT(Lines(snapshot),
              ElementsAre("1 2: waits for run x on cpu:0, about 10 s",
                          "2 3: waits its turn behind 1 run, about 20 s",
                          "3 1: waits its turn behind 2 runs of higher priority, about 30 s"));
}

TEST(ForecastTest, SaysWhichLimitIsReached) {
  Snapshot snapshot;
  AddSlots(snapshot, 4);
  AddGpus(snapshot, 1);
  Hold(snapshot, {.run = "x", .name = "x", .user = "ann"}, {"cpu:0"}, {.remaining_seconds = 30});
  Hold(snapshot, {.run = "y", .name = "y", .user = "bob", .memory_bytes = 6 * kGiB}, {"gpu:0"});
  snapshot.users["ann"].max_running = 1;
  snapshot.users["bob"].max_gpu_memory_bytes = 8 * kGiB;
  snapshot.queue = {{.id = "1", .user = "ann"},
                    {.id = "2", .user = "bob", .device = "gpu", .gpu_memory_bytes = 5 * kGiB}};
  EXPECT_THAT(Lines(snapshot),
              ElementsAre("1 1: ann already runs 1 of at most 1, about 30 s",
                          "2 2: asks for 5 GiB of GPU memory, and bob already uses 6 GiB of at "
                          "most 8 GiB"));
}

TEST(ForecastTest, WhatDoesNotStartByItselfComesLastAndHasNoPlace) {
  Snapshot snapshot;
  AddSlots(snapshot, 1);
  snapshot.queue = {{.id = "1", .held = true},
                    {.id = "2", .unmet = "base"},
                    {.id = "3", .not_before = 39.5},
                    {.id = "4", .device = "gpu"}};
  EXPECT_THAT(Lines(snapshot),
              ElementsAre("1 3: tried again in 40 s",
                          "2 4: no device: this server has no GPU; use cpu or auto", "0 1: held",
                          "0 2: waits for run base to end"));
}

TEST(ForecastTest, WhatFollowsAnUnknownEndHasAPlaceButNoTime) {
  Snapshot snapshot;
  AddSlots(snapshot, 1);
  Hold(snapshot, {.run = "x", .name = "x"}, {"cpu:0"});
  snapshot.queue = {{.id = "1", .expected_seconds = 5}, {.id = "2", .expected_seconds = 5}};
  const std::vector<Waiting> forecast = MakeForecast(snapshot);
  ASSERT_EQ(forecast.size(), 2u);
  EXPECT_EQ(forecast[1].position, 2);
  EXPECT_EQ(forecast[0].start_seconds, std::nullopt);
  EXPECT_EQ(forecast[1].start_seconds, std::nullopt);
  EXPECT_EQ(ReasonWithTime(forecast[0]), "waits for run x on cpu:0");
}

TEST(ForecastTest, OneThatFindsNoRoomOnASharedGpuIsToldHowMuchThereIs) {
  Snapshot snapshot;
  AddGpus(snapshot, 1);
  snapshot.devices[0].foreign_bytes = 10 * kGiB;
  Hold(snapshot, {.run = "x", .name = "x", .memory_bytes = 30 * kGiB}, {"gpu:0"},
       {.remaining_seconds = 240});
  Hold(snapshot, {.run = "y", .name = "y", .memory_bytes = 20 * kGiB}, {"gpu:0"});
  snapshot.queue = {{.id = "1", .device = "gpu", .gpu_memory_bytes = 30 * kGiB}};
  EXPECT_THAT(Lines(snapshot),
              ElementsAre("1 1: waits for run x on gpu:0: asks for 30 GiB, and 20 GiB of 80 GiB "
                          "are not lent, about 4 min"));
  snapshot.queue[0].exclusive = true;
  EXPECT_THAT(Lines(snapshot), ElementsAre("1 1: waits for run y on gpu:0"));
}

TEST(ForecastTest, OneThatOthersLeaveNoRoomForIsToldHowMuchTheyLeave) {
  Snapshot snapshot;
  AddGpus(snapshot, 2);
  snapshot.devices[0].foreign_bytes = 60 * kGiB;
  snapshot.devices[1].foreign_bytes = 50 * kGiB;
  snapshot.queue = {{.id = "1", .device = "gpu", .gpu_memory_bytes = 40 * kGiB}};
  EXPECT_THAT(Lines(snapshot), ElementsAre("1 1: no device: asks for 40 GiB of a GPU, and others "
                                           "leave 30 GiB of 80 GiB on gpu:1"));
}

TEST(ForecastTest, WhyNoGpuTakesRunsIsToldForTheFirstFew) {
  Snapshot snapshot;
  AddGpus(snapshot, 5);
  for (Device& device : snapshot.devices) device.unavailable_reason = "others use it";
  snapshot.queue = {{.id = "1", .device = "gpu"}};
  EXPECT_THAT(Lines(snapshot),
              ElementsAre("1 1: no device: no GPU takes runs (gpu:0: others use it; gpu:1: others "
                          "use it; gpu:2: others use it; and 2 more)"));
}

TEST(ForecastTest, UsersTakeTurnsAsTheyWill) {
  Snapshot snapshot;
  AddSlots(snapshot, 1);
  Hold(snapshot, {.run = "x", .user = "ann"}, {"cpu:0"}, {.remaining_seconds = 10});
  for (const char* id : {"a1", "a2", "a3"}) {
    snapshot.queue.push_back({.id = id, .user = "ann", .expected_seconds = 10});
  }
  for (const char* id : {"b1", "b2"}) {
    snapshot.queue.push_back({.id = id, .user = "bob", .expected_seconds = 10});
  }
  std::vector<std::string> order;
  for (const Waiting& waiting : MakeForecast(snapshot)) order.push_back(waiting.run);
  EXPECT_THAT(order, ElementsAre("b1", "a1", "b2", "a2", "a3"));
}

TEST(ForecastTest, AWideRunStartsWhenItsDevicesAreFree) {
  Snapshot snapshot;
  AddSlots(snapshot, 2);
  Hold(snapshot, {.run = "x", .name = "x"}, {"cpu:0"}, {.remaining_seconds = 50});
  snapshot.queue = {{.id = "1", .threads = 2, .expected_seconds = 10},
                    {.id = "2", .expected_seconds = 60},
                    {.id = "3", .expected_seconds = 40}};
  std::map<std::string, std::optional<double>> starts;
  for (const Waiting& waiting : MakeForecast(snapshot)) {
    starts[waiting.run] = waiting.start_seconds;
  }
  EXPECT_THAT(starts["3"], Optional(0.0));
  EXPECT_THAT(starts["1"], Optional(50.0));
  EXPECT_THAT(starts["2"], Optional(60.0));
}

TEST(ForecastTest, WhoPausesForAnotherIsNamed) {
  Snapshot snapshot;
  AddSlots(snapshot, 1);
  Hold(snapshot, {.run = "x", .name = "low", .priority = -1, .preemptible = true}, {"cpu:0"});
  snapshot.queue = {{.id = "1", .priority = 1}};
  EXPECT_THAT(Lines(snapshot), ElementsAre("1 1: waits for run low on cpu:0 to stop, about 10 s"));
}

TEST(ForecastTest, TimesReadAsPeopleSayThem) {
  EXPECT_EQ(AboutText(0.2), "any moment");
  EXPECT_EQ(AboutText(40), "about 40 s");
  EXPECT_EQ(AboutText(240), "about 4 min");
  EXPECT_EQ(AboutText(5 * 3600), "about 5 h");
  EXPECT_EQ(AboutText(72 * 3600), "about 3 days");
}

}  // namespace
}  // namespace normlab::scheduler
