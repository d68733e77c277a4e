#include "server/scheduler/plan.h"

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/scheduler/inventory.h"
#include "tests/fakes/temp_dir.h"

namespace normlab::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<Device> Slots(int count) {
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i) {
    Device device;
    device.id = "cpu:" + std::to_string(i);
    devices.push_back(device);
  }
  return devices;
}

std::vector<std::string> Started(const Plan& plan) {
  std::vector<std::string> started;
  for (const Placement& placement : plan.start) {
    started.push_back(placement.run + "@" + JoinDevices(placement.devices));
  }
  return started;
}

TEST(PlanTest, TwoRunsSideBySideThenTheThird) {
  std::vector<Device> devices = Slots(2);
  const std::vector<QueuedRun> queue = {
      {"a", "first", "auto", 1}, {"b", "second", "auto", 1}, {"c", "third", "auto", 1}};
  const Plan plan = MakePlan(queue, devices);
  EXPECT_THAT(Started(plan), ElementsAre("a@cpu:0", "b@cpu:1"));
  ASSERT_EQ(plan.wait.size(), 1u);
  EXPECT_EQ(plan.wait[0].run, "c");
  EXPECT_EQ(plan.wait[0].reason, "waits for first, second");
  devices[1].leases = {{.run = "b", .name = "second"}};
  EXPECT_THAT(Started(MakePlan({queue[2]}, devices)), ElementsAre("c@cpu:0"));
}

TEST(PlanTest, AWideRunIsNotStarvedByNarrowOnes) {
  std::vector<Device> devices = Slots(2);
  devices[0].leases = {{.run = "x", .name = "x"}};
  const Plan plan = MakePlan({{"wide", "", "cpu", 2}, {"narrow", "", "cpu", 1}}, devices);
  EXPECT_THAT(plan.start, IsEmpty());
  EXPECT_EQ(plan.wait.size(), 2u);
}

TEST(PlanTest, ARunOnANamedSlotWaitsForThatSlotOnly) {
  std::vector<Device> devices = Slots(2);
  devices[1].leases = {{.run = "x", .name = "x"}};
  const Plan plan = MakePlan({{"a", "", "cpu:1", 1}, {"b", "", "auto", 1}}, devices);
  EXPECT_THAT(Started(plan), ElementsAre("b@cpu:0"));
  EXPECT_EQ(plan.wait[0].reason, "waits for x");
}

TEST(PlanTest, SaysWhyARunCanNeverStart) {
  const std::vector<Device> devices = Slots(2);
  EXPECT_EQ(WhyNever("auto", 2, devices), "");
  EXPECT_THAT(WhyNever("auto", 3, devices), HasSubstr("3 threads"));
  EXPECT_THAT(WhyNever("gpu", 1, devices), HasSubstr("no GPU"));
  EXPECT_THAT(WhyNever("cpu:7", 1, devices), HasSubstr("cpu:0, cpu:1"));
}

TEST(InventoryTest, TheSmallestQuotaOnTheWayUpCounts) {
  fakes::TempDir dir;
  std::filesystem::create_directories(dir.path() / "outer/inner");
  std::ofstream(dir.path() / "outer/cpu.max") << "150000 100000\n";
  std::ofstream(dir.path() / "outer/inner/cpu.max") << "max 100000\n";
  EXPECT_DOUBLE_EQ(QuotaCores(dir.path(), "outer/inner"), 1.5);
  EXPECT_DOUBLE_EQ(QuotaCores(dir.path(), "elsewhere"), 0);
}

TEST(InventoryTest, ThereIsAlwaysASlotAndOneForEachUsableCore) {
  const std::vector<Device> devices = CpuSlots(0);
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices[0].id, "cpu:0");
  EXPECT_GE(UsableMemory(), int64_t{1} << 20);
  EXPECT_EQ(CpuSlots(1)[0].kind, DeviceKind::kCpu);
}

}  // namespace
}  // namespace normlab::scheduler
