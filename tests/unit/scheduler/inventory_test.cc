#include "server/scheduler/inventory.h"

#include <fstream>

#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"

namespace normlab::scheduler {
namespace {

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
