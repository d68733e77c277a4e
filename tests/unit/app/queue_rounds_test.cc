// What the dispatcher does with a queue of several users.
#include "gmock/gmock.h"
#include "tests/unit/app/dispatcher_fixture.h"

namespace normlab::app {
namespace {

using ::testing::HasSubstr;

class QueueRoundsTest : public DispatcherTest {
 protected:
  std::string Add(const std::string& user, const std::function<void(v1::Run&)>& change = nullptr) {
    v1::Run run = runs_.MakeRun();
    run.set_user(user);
    if (change) change(run);
    EXPECT_TRUE(
        runs_.store()
            .writer()
            .Write([&](storage::WriteContext& context) { return storage::InsertRun(context, run); })
            .ok());
    return run.id();
  }
  void End(const executor::LaunchRequest& launch) {
    runs_.clock().Advance(std::chrono::seconds(10));  // which its user has used
    executor_->Exit(launch.key, Code(1));
  }
};

TEST_F(QueueRoundsTest, WhoQueuesOneRunIsServedAtTheNextFreeSlotBehindAHundred) {
  for (int i = 0; i < 100; ++i) Add("ann");
  Start(2);
  const executor::LaunchRequest first = executor_->WaitForLaunch(2);
  const std::string one = Add("bob");
  dispatcher_->Wake();
  End(first);
  EXPECT_EQ(executor_->WaitForLaunch(3).key.run, one);
}

TEST_F(QueueRoundsTest, WhatARunHasUsedCountsThoughNothingElseHappensMeanwhile) {
  Start(1);
  runs_.clock().Advance(std::chrono::seconds(5));  // no round is due by itself
  const std::string run = Add("ann");
  dispatcher_->Wake();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  End(launch);
  WaitForState(run, v1::Run::STATE_FAILED);
  const auto used = [this] {
    const absl::StatusOr<v1::Queue> queue = dispatcher_->queue().Describe(10);
    EXPECT_TRUE(queue.ok()) << queue.status();
    return queue->users().empty() ? 0 : queue->users(0).decayed_device_seconds();
  };
  for (int i = 0; i < 20'000 && used() == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_NEAR(used(), 10, 0.01);
}

TEST_F(QueueRoundsTest, AWideRunStartsThoughNarrowOnesAreAlwaysThere) {
  for (int i = 0; i < 20; ++i) Add("ann");
  Start(2);
  const executor::LaunchRequest first = executor_->WaitForLaunch(1);
  const executor::LaunchRequest second = executor_->WaitForLaunch(2);
  const std::string wide =
      Add("bob", [](v1::Run& run) { run.mutable_effective_spec()->set_threads(2); });
  dispatcher_->Wake();
  End(first);
  WaitForState(first.key.run, v1::Run::STATE_FAILED);
  End(second);
  const executor::LaunchRequest launch = executor_->WaitForLaunch(3);
  EXPECT_EQ(launch.key.run, wide);
  EXPECT_EQ(launch.threads, 2);
}

TEST_F(QueueRoundsTest, WaitReasonsAreWrittenForWatchers) {
  const std::string first = Add("ann"), second = Add("ann"),
                    held = Add("ann", [](v1::Run&run) { run.set_held(true); });
  Start(1);
  executor_->WaitForLaunch(1);
  for (const auto& [run, reason] :
       {std::pair(second, "waits for run a run on cpu:0"), std::pair(held, "held")}) {
    for (int i = 0; i < 20'000 && runs_.Read(run).wait_reason().empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(runs_.Read(run).wait_reason(), reason);
  }
  EXPECT_EQ(runs_.Read(first).wait_reason(), "");
}

TEST_F(QueueRoundsTest, ADependentRunStartsWhenTheOtherHasEnded) {
  const std::string first = Add("ann");
  const std::string second = Add("ann", [&](v1::Run& run) {
    run.add_after()->set_run(first);
    run.mutable_after(0)->set_condition("any");
  });
  Start(2);
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  EXPECT_EQ(launch.key.run, first);
  End(launch);
  EXPECT_EQ(executor_->WaitForLaunch(2).key.run, second);
}

TEST_F(QueueRoundsTest, LeasesSayWhoseTheyAre) {
  Add("ann", [](v1::Run& run) {
    run.set_priority("low");
    run.mutable_effective_spec()->set_preemptible(true);
  });
  Start(1);
  executor_->WaitForLaunch(1);
  for (int round = 0; round < 2; ++round) {
    const std::vector<scheduler::Lease> leases = devices_->Devices().at(0).leases;
    ASSERT_EQ(leases.size(), 1u) << round;
    EXPECT_EQ(leases[0].user, "ann");
    EXPECT_EQ(leases[0].priority, -1);
    EXPECT_TRUE(leases[0].preemptible);
    if (round == 0) {  // the same after a restart
      WaitForState(leases[0].run, v1::Run::STATE_STARTING);
      dispatcher_->Stop();
      dispatcher_.reset();
      Start(1);
    }
  }
}

}  // namespace
}  // namespace normlab::app
