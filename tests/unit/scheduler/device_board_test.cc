#include "server/scheduler/device_board.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/scheduler/snapshots.h"

namespace normlab::scheduler {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

class DeviceBoardTest : public ::testing::Test {
 protected:
  // Processes from 1000 on are ours, and belong to the run of that name.
  bool Update() {
    DeviceBoard::Changes changes = board_.Update(
        {gpu_},
        [this](pid_t pid) { return pid < 1000 || dead_ ? "" : "run" + std::to_string(pid); }, now_);
    troubles_ = std::move(changes.troubles);
    return changes.more_room;
  }
  Device Gpu() const { return board_.Devices().back(); }
  void TakeAndUse(const std::string& run, pid_t pid, int64_t bytes) {
    board_.Take({.run = run, .name = "a " + run, .memory_bytes = bytes}, {"gpu:0"});
    gpu_.processes.push_back({.pid = pid, .memory_bytes = bytes});
    gpu_.used_bytes += bytes;
    Update();
  }

  DeviceBoard board_{{{.id = "cpu:0"}}};
  GpuReading gpu_ = {.id = "gpu:0",
                     .name = "H200",
                     .uuid = "GPU-0",
                     .memory_bytes = 80 * kGiB,
                     .used_bytes = 600 * kMiB};
  DeviceBoard::Time now_{};
  std::vector<DeviceBoard::Trouble> troubles_;  // of the last look
  bool dead_ = false;                           // nobody can be asked whose process it is
};

TEST_F(DeviceBoardTest, AGpuIsThereWithItsMemory) {
  EXPECT_TRUE(Update());
  EXPECT_EQ(Gpu().id, "gpu:0");
  EXPECT_EQ(Gpu().kind, DeviceKind::kGpu);
  EXPECT_EQ(Gpu().memory_bytes, 80 * kGiB);
  EXPECT_EQ(Gpu().unavailable_reason, "");
  EXPECT_FALSE(Update()) << "nothing has changed";
}

TEST_F(DeviceBoardTest, OneThatOthersFillIsUsedAgainWhenTheyHaveGone) {
  Update();
  gpu_.processes = {{.pid = 71, .memory_bytes = 75 * kGiB}};
  gpu_.used_bytes = 76 * kGiB;
  Update();
  EXPECT_EQ(Gpu().foreign_bytes, 75 * kGiB);
  EXPECT_EQ(Gpu().unavailable_reason,
            "others (process 71) use 75 GiB of its 80 GiB; it is used again when they have ended");
  gpu_.processes = {{.pid = 71, .memory_bytes = 10 * kGiB}};
  EXPECT_TRUE(Update());
  EXPECT_EQ(Gpu().unavailable_reason, "");
  EXPECT_EQ(Gpu().foreign_bytes, 10 * kGiB);
}

TEST_F(DeviceBoardTest, MemoryWhoseProcessesCannotBeSeenIsTakenForOthers) {
  gpu_.used_bytes = 79 * kGiB;
  Update();
  EXPECT_EQ(Gpu().foreign_bytes, 79 * kGiB);
  EXPECT_THAT(Gpu().unavailable_reason, HasSubstr("others use 79 GiB"));
}

TEST_F(DeviceBoardTest, WhereTheDriverSaysNoSizesWhatIsNotOursIsOthers) {
  Update();
  TakeAndUse("run1000", 1000, 8 * kGiB);
  gpu_.processes.push_back({.pid = 71});
  gpu_.used_bytes += 30 * kGiB;
  Update();
  EXPECT_GE(Gpu().foreign_bytes, 30 * kGiB);
  EXPECT_LE(Gpu().foreign_bytes, 31 * kGiB);
}

TEST_F(DeviceBoardTest, ALeaseReturnsWhenTheProcessAndItsMemoryAreGone) {
  Update();
  TakeAndUse("run1000", 1000, 8 * kGiB);
  EXPECT_EQ(Gpu().foreign_bytes, 0);
  board_.Release("run1000");
  EXPECT_FALSE(Update()) << "its process is still there";
  EXPECT_TRUE(Gpu().leases.at(0).returning);
  gpu_.processes.clear();
  EXPECT_FALSE(Update()) << "its memory is still in use";
  EXPECT_EQ(Gpu().leases.size(), 1u);
  gpu_.used_bytes = 650 * kMiB;
  EXPECT_TRUE(Update());
  EXPECT_TRUE(Gpu().leases.empty());
  EXPECT_EQ(Gpu().unavailable_reason, "");
}

TEST_F(DeviceBoardTest, AProcessThatHasEndedIsStillItsRunsWhileTheDriverShowsIt) {
  Update();
  TakeAndUse("run1000", 1000, 8 * kGiB);
  dead_ = true;
  board_.Release("run1000");
  EXPECT_FALSE(Update());
  EXPECT_EQ(Gpu().leases.size(), 1u);
  EXPECT_EQ(Gpu().foreign_bytes, 0);
  gpu_.processes.clear();
  gpu_.used_bytes = 600 * kMiB;
  EXPECT_TRUE(Update());
  EXPECT_TRUE(Gpu().leases.empty());
}

TEST_F(DeviceBoardTest, MemoryThatDoesNotComeBackQuarantinesTheGpuUntilItDoes) {
  Update();
  TakeAndUse("run1000", 1000, 8 * kGiB);
  board_.Release("run1000");
  gpu_.processes.clear();
  Update();
  now_ += DeviceBoard::kReturnTime;
  Update();
  EXPECT_TRUE(Gpu().leases.empty());
  EXPECT_EQ(Gpu().unavailable_reason,
            "quarantined: 8192 MiB were still in use by no process after run a run1000 had ended; "
            "when all is well there: normlab devices --enable gpu:0");
  gpu_.used_bytes = 600 * kMiB;
  EXPECT_TRUE(Update());
  EXPECT_EQ(Gpu().unavailable_reason, "");
}

TEST_F(DeviceBoardTest, WhatARunLeftThereThatHoldsTheGpuNoMoreIsOthers) {
  Update();
  TakeAndUse("run1000", 1000, 8 * kGiB);
  board_.Release("run1000");
  now_ += DeviceBoard::kReturnTime;
  Update();
  now_ += DeviceBoard::kReturnTime;
  Update();
  Update();
  EXPECT_THAT(Gpu().unavailable_reason, HasSubstr("a process was still there"));
  board_.Drain("gpu:0", "");
  Update();
  EXPECT_EQ(Gpu().foreign_bytes, 8 * kGiB);
  board_.Take({.run = "run1000", .memory_bytes = 8 * kGiB}, {"gpu:0"});  // as after a restart
  Update();
  EXPECT_EQ(Gpu().foreign_bytes, 0);
}

TEST_F(DeviceBoardTest, AnAdminEndsAQuarantineAndWhatIsInUseThenIsNormal) {
  Update();
  TakeAndUse("run1000", 1000, 2 * kGiB);
  board_.Release("run1000");
  gpu_.processes.clear();
  Update();
  now_ += DeviceBoard::kReturnTime;
  Update();
  ASSERT_THAT(Gpu().unavailable_reason, HasSubstr("quarantined"));
  board_.Drain("gpu:0", "");
  EXPECT_EQ(Gpu().unavailable_reason, "");
  Update();
  EXPECT_EQ(Gpu().unavailable_reason, "");
}

TEST_F(DeviceBoardTest, RunsThatShareAGpuReturnTheirLeasesEachForItself) {
  Update();
  TakeAndUse("run1000", 1000, 8 * kGiB);
  TakeAndUse("run1001", 1001, 4 * kGiB);
  board_.Release("run1000");
  gpu_.processes.erase(gpu_.processes.begin());
  gpu_.used_bytes -= 8 * kGiB;
  EXPECT_TRUE(Update());
  ASSERT_EQ(Gpu().leases.size(), 1u);
  EXPECT_EQ(Gpu().leases[0].run, "run1001");
}

TEST_F(DeviceBoardTest, AGpuThatFallsOffTheBusKeepsItsLeaseAndComesBack) {
  Update();
  TakeAndUse("run1000", 1000, 8 * kGiB);
  const GpuReading before = gpu_;
  gpu_ = {.id = "gpu:0", .name = "H200", .uuid = "GPU-0", .memory_bytes = 80 * kGiB};
  gpu_.fault = "the driver says: GPU is lost";
  Update();
  EXPECT_EQ(Gpu().unavailable_reason, "the driver says: GPU is lost");
  EXPECT_EQ(Gpu().leases.size(), 1u);
  board_.Release("run1000");
  Update();
  now_ += DeviceBoard::kReturnTime;
  Update();
  EXPECT_TRUE(Gpu().leases.empty()) << "the run must not wait for a GPU that is gone";
  gpu_ = before;
  gpu_.processes.clear();
  gpu_.used_bytes = 600 * kMiB;
  EXPECT_TRUE(Update());
  EXPECT_EQ(Gpu().unavailable_reason, "");
}

TEST_F(DeviceBoardTest, ARunThatHoldsMoreThanItsBudgetIsNamedWithBoth) {
  using Kind = DeviceBoard::Trouble::Kind;
  Update();
  TakeAndUse("run1000", 1000, 8 * kGiB);
  TakeAndUse("run1001", 1001, 4 * kGiB);
  EXPECT_TRUE(troubles_.empty()) << "exactly as much is allowed";
  gpu_.processes[1].memory_bytes = 4 * kGiB + kMiB;
  Update();
  ASSERT_EQ(troubles_.size(), 1u);
  EXPECT_EQ(troubles_[0].kind, Kind::kOverBudget);
  EXPECT_EQ(troubles_[0].run, "run1001");
  EXPECT_EQ(troubles_[0].reason,
            "it held 4097 MiB of gpu:0's memory, and its budget is 4096 MiB; give it more "
            "(--gpu-memory), ask for the GPU alone (--exclusive), or make batch_size or the model "
            "smaller");
  board_.Release("run1001");
  Update();
  EXPECT_TRUE(troubles_.empty()) << "it has ended";
}

TEST_F(DeviceBoardTest, OneThatHasTheGpuForItselfMayFillIt) {
  Update();
  board_.Take({.run = "run1000", .exclusive = true, .memory_bytes = kGiB}, {"gpu:0"});
  gpu_.processes = {{.pid = 1000, .memory_bytes = 70 * kGiB}};
  gpu_.used_bytes = 71 * kGiB;
  Update();
  EXPECT_TRUE(troubles_.empty());
}

TEST_F(DeviceBoardTest, AGpuThatIsGoneForLongIsLostToItsRuns) {
  using Kind = DeviceBoard::Trouble::Kind;
  Update();
  TakeAndUse("run1000", 1000, 8 * kGiB);
  const GpuReading before = gpu_;
  gpu_ = {.id = "gpu:0", .name = "H200", .uuid = "GPU-0", .memory_bytes = 80 * kGiB};
  gpu_.fault = "the driver says: GPU is lost";
  Update();
  EXPECT_EQ(board_.FaultOf({"cpu:0", "gpu:0"}), "gpu:0 was lost: the driver says: GPU is lost");
  EXPECT_TRUE(troubles_.empty()) << "it may be back in a moment";
  now_ += DeviceBoard::kLostTime - std::chrono::milliseconds(1);
  Update();
  EXPECT_TRUE(troubles_.empty());
  now_ += std::chrono::milliseconds(1);
  Update();
  ASSERT_EQ(troubles_.size(), 1u);
  EXPECT_EQ(troubles_[0].kind, Kind::kLostGpu);
  EXPECT_EQ(troubles_[0].reason, "gpu:0 was lost: the driver says: GPU is lost");
  gpu_ = before;
  Update();
  EXPECT_TRUE(troubles_.empty());
  EXPECT_EQ(board_.FaultOf({"gpu:0"}), "");
}

TEST_F(DeviceBoardTest, OneThatTheDriverNoLongerNamesIsSaidToBeGone) {
  Update();
  const auto changes = board_.Update(
      {}, [](pid_t) { return std::string(); }, now_);
  EXPECT_FALSE(changes.more_room);
  EXPECT_EQ(Gpu().unavailable_reason, "the driver no longer names it");
}

TEST_F(DeviceBoardTest, ADrainedDeviceSaysWhyAlsoWhenItIsOnlyThereLater) {
  board_.Drain("gpu:0", "fan is broken");
  board_.Drain("cpu:0", "for the others");
  Update();
  EXPECT_EQ(Gpu().unavailable_reason, "fan is broken");
  EXPECT_EQ(board_.Devices()[0].unavailable_reason, "for the others");
  board_.Drain("cpu:0", "");
  EXPECT_EQ(board_.Devices()[0].unavailable_reason, "");
}

TEST(DeviceBoardWithoutGpusTest, GpusAreShownWithTheReason) {
  DeviceBoard board({}, {.refusal = "this normlab was built without CUDA"});
  board.Update({{.id = "gpu:0", .name = "H200", .uuid = "GPU-0", .memory_bytes = kGiB}},
               [](pid_t) { return std::string(); }, {});
  EXPECT_EQ(board.Devices()[0].unavailable_reason, "this normlab was built without CUDA");
  EXPECT_TRUE(board.Devices()[0].unavailable_for_good);
}

}  // namespace
}  // namespace normlab::scheduler
