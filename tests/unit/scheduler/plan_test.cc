#include "server/scheduler/plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/strings.h"
#include "tests/unit/scheduler/snapshots.h"

namespace normlab::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PlanTest, TwoRunsSideBySideThenTheThird) {
  Snapshot snapshot;
  AddSlots(snapshot, 2);
  snapshot.queue = {{.id = "a"}, {.id = "b"}, {.id = "c"}};
  EXPECT_THAT(Started(MakePlan(snapshot)), ElementsAre("a@cpu:0", "b@cpu:1"));
  Hold(snapshot, {.run = "b"}, {"cpu:1"});
  snapshot.queue = {{.id = "c"}};
  EXPECT_THAT(Started(MakePlan(snapshot)), ElementsAre("c@cpu:0"));
}

TEST(PlanTest, APlacementHasAllThatALeaseNeeds) {
  Snapshot snapshot;
  AddGpus(snapshot, 1);
  snapshot.queue = {{.id = "a",
                     .name = "first",
                     .user = "ann",
                     .priority = -1,
                     .device = "gpu",
                     .threads = 3,
                     .gpu_memory_bytes = 7,
                     .exclusive = true,
                     .preemptible = true}};
  const Plan plan = MakePlan(snapshot);
  ASSERT_EQ(plan.start.size(), 1u);
  const Placement& placement = plan.start[0];
  EXPECT_EQ(placement.name, "first");
  EXPECT_EQ(placement.threads, 3);
  EXPECT_EQ(placement.lease.run, "a");
  EXPECT_EQ(placement.lease.user, "ann");
  EXPECT_EQ(placement.lease.priority, -1);
  EXPECT_EQ(placement.lease.memory_bytes, 7);
  EXPECT_TRUE(placement.lease.exclusive);
  EXPECT_TRUE(placement.lease.preemptible);
}

// --- the order ---

TEST(PlanTest, ClassesGoStrictlyInOrder) {
  Snapshot snapshot;
  AddSlots(snapshot, 2);
  snapshot.queue = {{.id = "1", .user = "ann", .priority = -1},
                    {.id = "2", .user = "bob", .priority = 0},
                    {.id = "3", .user = "cid", .priority = 1}};
  snapshot.users["cid"].device_seconds = 1e6;
  EXPECT_THAT(Started(MakePlan(snapshot)), ElementsAre("3@cpu:0", "2@cpu:1"));
}

TEST(PlanTest, WhoQueuedAHundredGoesBehindWhoQueuedOne) {
  Snapshot snapshot;
  AddSlots(snapshot, 2);
  for (int i = 100; i < 200; ++i) {
    snapshot.queue.push_back({.id = StrCat("a", i), .user = "ann"});
  }
  Hold(snapshot, {.run = "a099", .user = "ann"}, {"cpu:0"});
  snapshot.queue.push_back({.id = "b1", .user = "bob"});
  EXPECT_THAT(Started(MakePlan(snapshot)), ElementsAre("b1@cpu:1"));
}

TEST(PlanTest, TwoUsersTakeTurnsWithinOneRound) {
  Snapshot snapshot;
  AddSlots(snapshot, 4);
  for (const char* id : {"1", "2", "3"}) snapshot.queue.push_back({.id = id, .user = "ann"});
  for (const char* id : {"4", "5", "6"}) snapshot.queue.push_back({.id = id, .user = "bob"});
  EXPECT_THAT(Started(MakePlan(snapshot)), ElementsAre("1@cpu:0", "4@cpu:1", "2@cpu:2", "5@cpu:3"));
}

TEST(PlanTest, WhoHasUsedLessGoesFirstUntilTheyAreEven) {
  Snapshot snapshot;
  AddSlots(snapshot, 3);
  for (const char* id : {"1", "2", "3"}) snapshot.queue.push_back({.id = id, .user = "ann"});
  for (const char* id : {"4", "5", "6"}) snapshot.queue.push_back({.id = id, .user = "bob"});
  snapshot.users["ann"].device_seconds = 100;  // more than one device's advance, less than two
  EXPECT_THAT(Started(MakePlan(snapshot)), ElementsAre("4@cpu:0", "5@cpu:1", "1@cpu:2"));
}

TEST(PlanTest, OnesOwnRunsGoByRankThenByAge) {
  Snapshot snapshot;
  AddSlots(snapshot, 3);
  snapshot.queue = {{.id = "3", .rank = 0}, {.id = "1", .rank = 5}, {.id = "2", .rank = 0}};
  EXPECT_THAT(Started(MakePlan(snapshot)), ElementsAre("2@cpu:0", "3@cpu:1", "1@cpu:2"));
}

TEST(PlanTest, WhatIsHeldOrTooEarlyOrWaitsForARunDoesNotStart) {
  Snapshot snapshot;
  AddSlots(snapshot, 4);
  snapshot.queue = {
      {.id = "1", .held = true}, {.id = "2", .unmet = "other"}, {.id = "3", .not_before = 0.1}};
  EXPECT_THAT(Started(MakePlan(snapshot)), IsEmpty());
  snapshot.queue[2].not_before = 0;
  EXPECT_THAT(Started(MakePlan(snapshot)), ElementsAre("3@cpu:0"));
}

// --- limits ---

TEST(PlanTest, NobodyRunsMoreThanTheyMay) {
  Snapshot snapshot;
  AddSlots(snapshot, 4);
  Hold(snapshot, {.run = "0", .user = "ann"}, {"cpu:0"});
  snapshot.users["ann"].max_running = 2;
  snapshot.queue = {{.id = "1", .user = "ann"},
                    {.id = "2", .user = "ann", .priority = -1},
                    {.id = "3", .user = "bob", .priority = -1}};
  EXPECT_THAT(Started(MakePlan(snapshot)), ElementsAre("1@cpu:1", "3@cpu:2"));
}

TEST(PlanTest, NobodyUsesMoreGpuMemoryThanTheyMay) {
  Snapshot snapshot;
  AddGpus(snapshot, 2);
  AddSlots(snapshot, 1);
  snapshot.users["ann"].max_gpu_memory_bytes = 50 * kGiB;
  snapshot.queue = {{.id = "1", .user = "ann", .device = "gpu", .gpu_memory_bytes = 30 * kGiB},
                    {.id = "2", .user = "ann", .device = "gpu", .gpu_memory_bytes = 30 * kGiB},
                    {.id = "3", .user = "ann", .device = "auto", .gpu_memory_bytes = 30 * kGiB},
                    {.id = "4", .user = "ann", .device = "gpu", .gpu_memory_bytes = 20 * kGiB}};
  EXPECT_THAT(Started(MakePlan(snapshot)), ElementsAre("1@gpu:0", "3@cpu:0", "4@gpu:1"));
}

// --- devices ---

TEST(PlanTest, AutoPrefersAGpuThenACpu) {
  Snapshot snapshot;
  AddSlots(snapshot, 1);
  AddGpus(snapshot, 1);
  snapshot.queue = {{.id = "1", .gpu_memory_bytes = 50 * kGiB},
                    {.id = "2", .gpu_memory_bytes = 50 * kGiB}};
  EXPECT_THAT(Started(MakePlan(snapshot)), ElementsAre("1@gpu:0", "2@cpu:0"));
  snapshot.devices[1].unavailable_reason = "drained";
  EXPECT_THAT(Started(MakePlan(snapshot)), ElementsAre("1@cpu:0"));
}

TEST(PlanTest, ARunOnANamedSlotWaitsForThatSlotOnly) {
  Snapshot snapshot;
  AddSlots(snapshot, 2);
  Hold(snapshot, {.run = "x"}, {"cpu:1"});
  snapshot.queue = {{.id = "a", .device = "cpu:1"}, {.id = "b"}};
  EXPECT_THAT(Started(MakePlan(snapshot)), ElementsAre("b@cpu:0"));
}

TEST(PlanTest, RunsShareAGpuWithinWhatForeignersLeave) {
  Snapshot snapshot;
  AddGpus(snapshot, 1);
  snapshot.devices[0].foreign_bytes = 20 * kGiB;
  snapshot.queue = {{.id = "1", .device = "gpu", .gpu_memory_bytes = 25 * kGiB},
                    {.id = "2", .device = "gpu", .gpu_memory_bytes = 25 * kGiB},
                    {.id = "3", .device = "gpu", .gpu_memory_bytes = 25 * kGiB}};
  EXPECT_THAT(Started(MakePlan(snapshot)), ElementsAre("1@gpu:0", "2@gpu:0"));
}

TEST(PlanTest, AnExclusiveRunSharesItsGpuWithNobody) {
  Snapshot snapshot;
  AddGpus(snapshot, 2);
  Hold(snapshot, {.run = "x", .memory_bytes = kGiB}, {"gpu:0"});
  snapshot.queue = {{.id = "1", .device = "gpu", .gpu_memory_bytes = kGiB, .exclusive = true},
                    {.id = "2", .device = "gpu", .gpu_memory_bytes = kGiB}};
  EXPECT_THAT(Started(MakePlan(snapshot)), ElementsAre("1@gpu:1", "2@gpu:0"));
}

TEST(PlanTest, TheGpuWithTheFewestRunsAndMostMemoryIsTaken) {
  Snapshot snapshot;
  AddGpus(snapshot, 3);
  Hold(snapshot, {.run = "x", .memory_bytes = kGiB}, {"gpu:0"});
  snapshot.devices[1].foreign_bytes = kGiB;
  snapshot.queue = {{.id = "1", .device = "gpu", .gpu_memory_bytes = kGiB}};
  EXPECT_THAT(Started(MakePlan(snapshot)), ElementsAre("1@gpu:2"));
}

// --- reservations ---

TEST(PlanTest, AWideRunKeepsWhatWillBeFreeFirst) {
  Snapshot snapshot;
  AddSlots(snapshot, 3);
  Hold(snapshot, {.run = "x"}, {"cpu:0"}, {.remaining_seconds = 100});
  Hold(snapshot, {.run = "y"}, {"cpu:2"}, {.remaining_seconds = 50});
  // It will have cpu:1 and cpu:2 in 50 s.
  snapshot.queue = {{.id = "1", .threads = 2},
                    {.id = "2"},                           // may never end
                    {.id = "3", .expected_seconds = 51},   // would delay it
                    {.id = "4", .expected_seconds = 50},   // perhaps
                    {.id = "5", .expected_seconds = 49}};  // would not
  EXPECT_THAT(Started(MakePlan(snapshot)), ElementsAre("5@cpu:1"));
}

TEST(PlanTest, NothingIsReservedForARunThatMayNotStart) {
  Snapshot snapshot;
  AddSlots(snapshot, 2);
  Hold(snapshot, {.run = "x", .user = "ann"}, {"cpu:0"});
  snapshot.users["ann"].max_running = 1;
  snapshot.queue = {{.id = "1", .user = "ann", .threads = 2}, {.id = "2", .user = "bob"}};
  EXPECT_THAT(Started(MakePlan(snapshot)), ElementsAre("2@cpu:1"));
}

TEST(PlanTest, AnExclusiveRunIsNotKeptOutBySmallOnes) {
  Snapshot snapshot;
  AddGpus(snapshot, 1);
  Hold(snapshot, {.run = "x", .memory_bytes = kGiB}, {"gpu:0"});
  snapshot.queue = {{.id = "1", .device = "gpu", .exclusive = true},
                    {.id = "2", .device = "gpu", .gpu_memory_bytes = kGiB}};
  EXPECT_THAT(Started(MakePlan(snapshot)), IsEmpty());
}

// --- preemption ---

TEST(PlanTest, ARunOfALowerClassIsPausedForAHigherOne) {
  Snapshot snapshot;
  AddSlots(snapshot, 2);
  Hold(snapshot, {.run = "old", .priority = -1, .preemptible = true}, {"cpu:0"},
       {.held_seconds = 100});
  Hold(snapshot, {.run = "young", .priority = -1, .preemptible = true}, {"cpu:1"},
       {.held_seconds = 10});
  snapshot.queue = {{.id = "1", .priority = 0}};
  Plan plan = MakePlan(snapshot);
  EXPECT_THAT(plan.start, IsEmpty());
  EXPECT_THAT(Preempted(plan), ElementsAre("young for 1"));
  // Once it has been told, nobody else is, and its device is not given away.
  snapshot.holdings["young"].stopping = true;
  snapshot.queue.push_back({.id = "2", .priority = -1});
  plan = MakePlan(snapshot);
  EXPECT_THAT(plan.start, IsEmpty());
  EXPECT_THAT(plan.preempt, IsEmpty());
}

TEST(PlanTest, NobodyIsPausedWithoutNeedOrWithoutEffect) {
  Snapshot snapshot;
  AddSlots(snapshot, 3);
  Hold(snapshot, {.run = "wide", .priority = -1, .preemptible = true}, {"cpu:0", "cpu:1"},
       {.held_seconds = 10});
  Hold(snapshot, {.run = "narrow", .priority = -1, .preemptible = true}, {"cpu:2"},
       {.held_seconds = 5});
  snapshot.queue = {{.id = "1", .threads = 2}};
  EXPECT_THAT(Preempted(MakePlan(snapshot)), ElementsAre("wide for 1"));
  snapshot.queue = {{.id = "1", .priority = -1}};  // not a higher class
  EXPECT_THAT(MakePlan(snapshot).preempt, IsEmpty());
  snapshot.queue = {{.id = "1", .threads = 3}};
  for (Device& device : snapshot.devices) {
    for (Lease& lease : device.leases) lease.preemptible = lease.run == "wide";
  }
  EXPECT_THAT(MakePlan(snapshot).preempt, IsEmpty());  // narrow stays, so wide would be in vain
}

TEST(PlanTest, AGpuThatIsComingBackIsKeptForWhoNeedsIt) {
  Snapshot snapshot;
  AddGpus(snapshot, 2);
  Hold(snapshot, {.run = "x", .exclusive = true, .returning = true}, {"gpu:0"});
  snapshot.holdings.clear();  // it has ended
  snapshot.queue = {{.id = "1", .device = "gpu", .gpus = 2, .exclusive = true},
                    {.id = "2", .device = "gpu", .exclusive = true, .expected_seconds = 5}};
  EXPECT_THAT(MakePlan(snapshot).start, IsEmpty()) << "the second would pass the first";
}

TEST(PlanTest, WhoseGpuIsComingBackIsNotPausedForAnother) {
  Snapshot snapshot;
  AddGpus(snapshot, 1);
  Hold(snapshot, {.run = "x", .priority = -1, .preemptible = true, .returning = true}, {"gpu:0"});
  snapshot.queue = {{.id = "1", .priority = 1, .device = "gpu", .exclusive = true}};
  EXPECT_THAT(MakePlan(snapshot).preempt, IsEmpty());
}

TEST(PlanTest, TwoHighRunsTakeTheDevicesOfTwo) {
  Snapshot snapshot;
  AddSlots(snapshot, 2);
  Hold(snapshot, {.run = "x", .priority = -1, .preemptible = true}, {"cpu:0"});
  Hold(snapshot, {.run = "y", .priority = -1, .preemptible = true}, {"cpu:1"});
  snapshot.queue = {{.id = "1", .priority = 1}, {.id = "2", .priority = 1}};
  EXPECT_THAT(Preempted(MakePlan(snapshot)), ElementsAre("y for 1", "x for 2"));
}

// --- what can never start ---

TEST(PlanTest, SaysWhyARunCanNeverStart) {
  Snapshot snapshot;
  AddSlots(snapshot, 2);
  const std::vector<Device>& devices = snapshot.devices;
  EXPECT_EQ(WhyNever("auto", 2, devices), "");
  EXPECT_THAT(WhyNever("auto", 3, devices), HasSubstr("3 threads"));
  EXPECT_THAT(WhyNever("gpu", 1, devices), HasSubstr("no GPU"));
  EXPECT_THAT(WhyNever("cpu:7", 1, devices), HasSubstr("cpu:0, cpu:1"));
  AddGpus(snapshot, 2);
  snapshot.devices[2].unavailable_reason = snapshot.devices[3].unavailable_reason = "built without";
  EXPECT_EQ(WhyNever("gpu", 1, devices),
            "no GPU takes runs (gpu:0: built without; gpu:1: built without)");
  EXPECT_EQ(WhyNever("gpu", 1, OnceAllIsWell(devices)), "");
  snapshot.devices[2].unavailable_for_good = snapshot.devices[3].unavailable_for_good = true;
  EXPECT_EQ(WhyNever("gpu", 1, OnceAllIsWell(devices)),
            "no GPU takes runs (gpu:0: built without; gpu:1: built without); use cpu or auto");
  for (Device& device : snapshot.devices) device.unavailable_reason.clear();
  EXPECT_EQ(WhyNever({.id = "", .device = "gpu", .gpus = 2}, devices), "");
  EXPECT_THAT(WhyNever({.id = "", .device = "gpu", .gpus = 3}, devices), HasSubstr("3 GPUs"));
  EXPECT_THAT(WhyNever({.id = "", .device = "gpu", .gpu_memory_bytes = 90 * kGiB}, devices),
              HasSubstr("92160 MiB"));
}

}  // namespace
}  // namespace normlab::scheduler
