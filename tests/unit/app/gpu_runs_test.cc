// Runs on GPUs: what their trainers may use, and what becomes of those whose GPU does not play
// along.
#include <csignal>

#include "gmock/gmock.h"
#include "server/base/gpu_context.h"
#include "server/domain/model_size.h"
#include "tests/unit/app/dispatcher_fixture.h"

namespace normlab::app {
namespace {

using executor::LaunchRequest;
using scheduler::DeviceBoard;
using scheduler::GpuReading;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Kind = DeviceBoard::Trouble::Kind;

constexpr int64_t kGiB = int64_t{1} << 30;

class GpuRunsTest : public DispatcherTest {
 protected:
  // A server with one CPU slot and one GPU.
  void StartWithGpu() {
    Start();
    Look();
    dispatcher_->Wake();
  }
  void Look(const std::string& fault = "") {
    GpuReading gpu = {.id = "gpu:0", .name = "H200", .uuid = "GPU-0", .memory_bytes = 80 * kGiB};
    gpu.fault = fault;
    devices_->Update(
        {gpu}, [](pid_t) { return std::string(); }, runs_.clock().Now());
  }
  std::string AddGpuRun(const v1::Resources& resources, const v1::RunSpec& spec = {}) {
    v1::Run run = runs_.MakeRun();
    run.set_device("gpu");
    run.mutable_effective_spec()->MergeFrom(spec);
    *run.mutable_resources() = resources;
    EXPECT_TRUE(
        runs_.store()
            .writer()
            .Write([&](storage::WriteContext& context) { return storage::InsertRun(context, run); })
            .ok());
    dispatcher_->Wake();
    return run.id();
  }
  static v1::Resources Memory(int64_t bytes, bool exclusive = false) {
    v1::Resources resources;
    resources.set_gpu_memory_bytes(bytes);
    resources.set_exclusive(exclusive);
    return resources;
  }
  static v1::RunSpec OnInterrupt(const std::string& what) {
    v1::RunSpec spec;
    spec.set_on_interrupt(what);
    return spec;
  }
  void ExpectTerminated(const LaunchRequest& launch, size_t times = 1) {
    for (int i = 0; i < 20'000 && executor_->terminated().size() < times; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_THAT(executor_->terminated(), SizeIs(times));
    EXPECT_EQ(executor_->terminated().back(), launch.key);
  }
  // Waits until the dispatcher has done what was asked of it before.
  void Settle() {
    const std::string other = AddRunWith("fail");
    dispatcher_->Wake();
    WaitForState(other, v1::Run::STATE_STARTING);
  }
};

TEST_F(GpuRunsTest, ATrainerIsToldItsBudgetAndSeesItsGpuOnly) {
  StartWithGpu();
  AddGpuRun(Memory(4 * kGiB));
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  EXPECT_EQ(launch.gpu_uuid, "GPU-0");
  const auto attached = Attach(launch);
  ASSERT_TRUE(attached.ok()) << attached.status();
  EXPECT_EQ(attached->assignment.gpu_memory_bytes(), 4 * kGiB);
  EXPECT_EQ(attached->assignment.device(), "gpu:0");
}

TEST_F(GpuRunsTest, WithoutABudgetOfItsOwnItIsWhatTheSettingsNeedAndCuda) {
  StartWithGpu();
  AddGpuRun({});
  const int64_t budget = Attach(executor_->WaitForLaunch(1))->assignment.gpu_memory_bytes();
  EXPECT_EQ(budget, domain::GpuMemoryBytes(runs_.MakeRun().effective_spec()));
  EXPECT_GT(budget, kGpuContextBytes);
}

TEST_F(GpuRunsTest, OneThatHasTheGpuForItselfHasNoBudget) {
  StartWithGpu();
  AddGpuRun(Memory(4 * kGiB, /*exclusive=*/true));
  EXPECT_EQ(Attach(executor_->WaitForLaunch(1))->assignment.gpu_memory_bytes(), 0);
}

TEST_F(GpuRunsTest, ARunOverItsBudgetHasFailedWithThatReasonHoweverItsTrainerEnds) {
  StartWithGpu();
  const std::string run = AddGpuRun(Memory(4 * kGiB));
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  ASSERT_TRUE(Attach(launch).ok());
  const DeviceBoard::Trouble trouble = {Kind::kOverBudget, run, "it held 5 of its 4 GiB"};
  dispatcher_->EndForTrouble(trouble);
  ExpectTerminated(launch);
  dispatcher_->EndForTrouble(trouble);  // as the watch does every second
  Settle();
  EXPECT_THAT(executor_->terminated(), SizeIs(1));
  executor_->Exit(launch.key, Signal(SIGTERM));
  const v1::Run ended = WaitForState(run, v1::Run::STATE_FAILED);
  EXPECT_EQ(ended.end_reason(), "it held 5 of its 4 GiB");
  EXPECT_EQ(ended.attempts(0).end_reason(), "it held 5 of its 4 GiB");
}

TEST_F(GpuRunsTest, ItIsTriedAgainAsOftenAsItsSettingsSay) {
  StartWithGpu();
  v1::RunSpec spec;
  spec.set_retries(1);
  const std::string run = AddGpuRun(Memory(4 * kGiB), spec);
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  dispatcher_->EndForTrouble({Kind::kOverBudget, run, "it held too much"});
  ExpectTerminated(launch);
  executor_->Exit(launch.key, Signal(SIGKILL));
  const v1::Run waiting = WaitForState(run, v1::Run::STATE_QUEUED);
  EXPECT_THAT(waiting.wait_reason(), StartsWith("tried again in 10 s (1 of 1): it held too much"));
}

TEST_F(GpuRunsTest, TheReasonOutlivesTheServer) {
  StartWithGpu();
  const std::string run = AddGpuRun(Memory(4 * kGiB));
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  ASSERT_TRUE(Attach(launch).ok());
  dispatcher_->EndForTrouble({Kind::kOverBudget, run, "it held too much"});
  ExpectTerminated(launch);
  dispatcher_.reset();
  StartWithGpu();
  executor_->Exit(launch.key, Signal(SIGTERM));
  EXPECT_EQ(WaitForState(run, v1::Run::STATE_FAILED).end_reason(), "it held too much");
}

TEST_F(GpuRunsTest, WhoIsCancelledMeanwhileIsCancelledAndWhoSucceedsHasSucceeded) {
  StartWithGpu();
  const std::string cancelled = AddGpuRun(Memory(4 * kGiB));
  const LaunchRequest first = executor_->WaitForLaunch(1);
  ASSERT_TRUE(Attach(first).ok());
  dispatcher_->EndForTrouble({Kind::kOverBudget, cancelled, "it held too much"});
  ExpectTerminated(first);
  ASSERT_TRUE(dispatcher_->Cancel(cancelled, "lab1").ok());
  executor_->Exit(first.key, Signal(SIGTERM));
  EXPECT_THAT(WaitForState(cancelled, v1::Run::STATE_CANCELLED).end_reason(),
              StartsWith("cancelled"));
  const std::string succeeded = AddGpuRun(Memory(4 * kGiB));
  const LaunchRequest second = executor_->WaitForLaunch(2);
  const auto attached = Attach(second);
  dispatcher_->EndForTrouble({Kind::kOverBudget, succeeded, "it held too much"});
  ExpectTerminated(second, 3);
  ASSERT_TRUE(runs_
                  .Append(attached->attempt_id, 1,
                          {fakes::FinishedRecord(worker::v1::Finished::OUTCOME_SUCCEEDED)})
                  .ok());
  executor_->Exit(second.key, Code(0));
  WaitForState(succeeded, v1::Run::STATE_SUCCEEDED);
}

TEST_F(GpuRunsTest, ALostGpuInterruptsItsRun) {
  StartWithGpu();
  const std::string run = AddGpuRun(Memory(4 * kGiB), OnInterrupt("resume"));
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  ASSERT_TRUE(Attach(launch).ok());
  Look("the driver says: GPU is lost");
  dispatcher_->EndForTrouble({Kind::kLostGpu, run, "gpu:0 was lost"});
  ExpectTerminated(launch);
  executor_->Exit(launch.key, Signal(SIGKILL));
  const v1::Run waiting = WaitForState(run, v1::Run::STATE_QUEUED);
  EXPECT_THAT(waiting.wait_reason(),
              StartsWith("interrupted: gpu:0 was lost: the driver says: GPU is lost; the trainer "
                         "was ended by signal 9 (SIGKILL)"));
  EXPECT_THAT(waiting.wait_reason(), HasSubstr("starts from the beginning"));
}

TEST_F(GpuRunsTest, ATrainerThatFailsOnALostGpuWasInterruptedByThat) {
  StartWithGpu();
  const std::string run = AddGpuRun(Memory(4 * kGiB), OnInterrupt("fail"));
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  const auto attached = Attach(launch);
  Look("the driver says: GPU is lost");
  ASSERT_TRUE(runs_
                  .Append(attached->attempt_id, 1,
                          {fakes::FinishedRecord(worker::v1::Finished::OUTCOME_FAILED)})
                  .ok());
  executor_->Exit(launch.key, Code(1));
  EXPECT_THAT(WaitForState(run, v1::Run::STATE_FAILED).end_reason(),
              StartsWith("gpu:0 was lost: the driver says: GPU is lost; "));
}

}  // namespace
}  // namespace normlab::app
