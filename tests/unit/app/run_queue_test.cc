#include "server/app/run_queue.h"

#include <chrono>
#include <functional>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/strings.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::app {
namespace {

using ::testing::IsEmpty;

constexpr std::chrono::hours kDay(24);

class RunQueueTest : public ::testing::Test {
 protected:
  RunQueueTest() {
    std::vector<scheduler::Device> devices(2);
    devices[0].id = "cpu:0";
    devices[1].id = "cpu:1";
    board_ = std::make_unique<scheduler::DeviceBoard>(devices);
    Restart();
  }
  void Restart() {
    queue_ = std::make_unique<RunQueue>(runs_.store(), *board_, &progress_, runs_.clock());
    ASSERT_TRUE(queue_->Load().ok());
  }

  std::string Add(const std::string& user, const std::function<void(v1::Run&)>& change = nullptr) {
    v1::Run run = runs_.MakeRun();
    run.set_user(user);
    run.mutable_summary()->set_flops_per_step(1e9);
    if (change) change(run);
    Write([&](storage::WriteContext& context) { return storage::InsertRun(context, run); });
    return run.id();
  }
  void Write(const std::function<absl::Status(storage::WriteContext&)>& write) {
    const absl::Status status = runs_.store().writer().Write(write);
    ASSERT_TRUE(status.ok()) << status;
  }
  void Sql(const std::string& sql) {
    Write([&](storage::WriteContext& context) { return context.database.Once(sql).Run(); });
  }
  // An attempt that runs for `seconds` by the clocks and does `steps`.
  void Train(const std::string& run, double seconds, int64_t steps) {
    const storage::AttemptRow attempt = runs_.StartAttempt(run);
    runs_.clock().Advance(std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6)));
    ASSERT_TRUE(
        runs_.Append(attempt.id, 1, {fakes::SeriesRecord({"loss"}), fakes::StepRecord(steps, {1})})
            .ok());
    Write([&](storage::WriteContext& context) {
      return storage::EndAttempt(context, attempt.id, {.run_seconds = seconds});
    });
    runs_.SetState(run, v1::Run::STATE_SUCCEEDED);
  }
  std::vector<std::string> Starts() {
    const auto plan = queue_->MakePlan([](const std::string&) { return false; });
    EXPECT_TRUE(plan.ok()) << plan.status();
    std::vector<std::string> runs;
    for (const scheduler::Placement& placement : plan->start) runs.push_back(placement.run);
    return runs;
  }
  // "RUN@DEVICES" of whoever starts.
  std::vector<std::string> Placed() {
    const auto plan = queue_->MakePlan([](const std::string&) { return false; });
    EXPECT_TRUE(plan.ok()) << plan.status();
    std::vector<std::string> placed;
    for (const scheduler::Placement& placement : plan->start) {
      placed.push_back(placement.run + "@" + scheduler::JoinDevices(placement.devices));
    }
    return placed;
  }
  v1::Run Asked(const std::string& id) {
    queue_->NoteChange();
    EXPECT_TRUE(queue_->Expect(/*latest=*/true).ok());
    v1::Run run = runs_.Read(id);
    queue_->Complete(run);
    return run;
  }

  fakes::StoredRuns runs_;
  ProgressBoard progress_;
  std::unique_ptr<scheduler::DeviceBoard> board_;
  std::unique_ptr<RunQueue> queue_;
};

TEST_F(RunQueueTest, OnlyWhatMayStartIsPlanned) {
  const std::string base = Add("ann", [](v1::Run& run) { run.set_held(true); });
  Add("ann", [&](v1::Run& run) {
    run.add_after()->set_run(base);
    run.mutable_after(0)->set_condition("any");
  });
  EXPECT_THAT(Starts(), IsEmpty());
  const std::string free = Add("ann");
  EXPECT_THAT(Starts(), ::testing::ElementsAre(free));
  EXPECT_THAT(Asked(base).wait_reason(), "held");
}

TEST_F(RunQueueTest, WhoIsHeldBackIsUpToTheDispatcherWhoseClockNobodySets) {
  const std::string later = Add("ann");
  Sql("UPDATE runs SET not_before = 9000000000000000 WHERE id = '" + later + "'");
  EXPECT_THAT(Starts(), ::testing::ElementsAre(later));
  const auto plan = queue_->MakePlan([&](const std::string& run) { return run == later; });
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->start.empty());
}

TEST_F(RunQueueTest, ARunStartsOnceTheOneBeforeItHasEndedAsItMust) {
  const std::string base = Add("ann", [](v1::Run& run) { run.set_display_name("base"); });
  const std::string ok = Add("ann", [&](v1::Run& run) { run.add_after()->set_run(base); });
  const std::string any = Add("ann", [&](v1::Run& run) {
    run.add_after()->set_run(base);
    run.mutable_after(0)->set_condition("any");
  });
  const v1::Run waiting = Asked(ok);
  EXPECT_EQ(waiting.wait_reason(), "waits for run base to end");
  EXPECT_EQ(waiting.queue_position(), 0);
  Sql("UPDATE runs SET state = 9 WHERE id = '" + base + "'");  // cancelled
  EXPECT_THAT(Starts(), ::testing::ElementsAre(any));
  Sql("UPDATE runs SET state = 7 WHERE id = '" + base + "'");
  EXPECT_THAT(Starts(), ::testing::ElementsAre(ok, any));
}

TEST_F(RunQueueTest, ThreadsClassesAndRanksComeFromTheRow) {
  const std::string low = Add("ann", [](v1::Run& run) { run.set_priority("low"); });
  const std::string wide =
      Add("ann", [](v1::Run& run) { run.mutable_effective_spec()->set_threads(2); });
  EXPECT_THAT(Starts(), ::testing::ElementsAre(wide));
  const std::string first = Add("ann");
  Sql("UPDATE runs SET queue_rank = -1 WHERE id = '" + first + "'");
  EXPECT_THAT(Starts(), ::testing::ElementsAre(first));  // the wide one waits for both slots
  Sql("UPDATE runs SET held = 1 WHERE id = '" + wide + "'");
  EXPECT_THAT(Starts(), ::testing::ElementsAre(first, low));
}

TEST_F(RunQueueTest, ARunGoesOnFromItsCheckpointOnTheKindOfDeviceThatWroteIt) {
  board_->Update(
      {{.id = "gpu:0", .name = "H200", .uuid = "GPU-0", .memory_bytes = int64_t{80} << 30}},
      [](pid_t) { return std::string(); }, runs_.clock().Now());
  const std::string run = Add("ann");
  EXPECT_THAT(Placed(), ::testing::ElementsAre(run + "@gpu:0")) << "auto prefers a GPU";
  const auto begin_on = [&](const std::string& device) {
    const storage::AttemptRow attempt = runs_.StartAttempt(run);
    Sql(StrCat("UPDATE attempts SET device = '", device, "', checkpoint_step = 5, end_time = 1 ",
               "WHERE id = ", attempt.id));
    Sql(StrCat("UPDATE runs SET step = 5, state = 1 WHERE id = '", run, "'"));
  };
  begin_on("cpu:0");
  EXPECT_THAT(Placed(), ::testing::ElementsAre(run + "@cpu:0"));
  begin_on("gpu:0");
  board_->Drain("gpu:0", "fan is broken");
  EXPECT_THAT(Placed(), IsEmpty()) << "a CPU could not go on from that";
  Sql(StrCat("UPDATE attempts SET abandoned = 1 WHERE run = '", run, "'"));
  EXPECT_THAT(Placed(), ::testing::ElementsAre(run + "@cpu:0")) << "it begins anew";
}

TEST_F(RunQueueTest, UsageIsAddedUpFromAttemptsAndDecays) {
  Train(Add("ann"), 3600, 10);
  for (int i = 0; i < 2; ++i) {
    queue_->NoteChange();
    Restart();  // known from the database alone
    const auto queue = queue_->Describe(10);
    ASSERT_TRUE(queue.ok());
    ASSERT_EQ(queue->users_size(), 1);
    EXPECT_EQ(queue->users(0).user(), "ann");
    EXPECT_NEAR(queue->users(0).decayed_device_seconds(), i == 0 ? 3600 : 1800, 60);
    runs_.clock().Advance(kDay);
  }
}

TEST_F(RunQueueTest, WhoHasUsedLessGoesFirst) {
  Train(Add("ann"), 100, 10);
  Restart();
  const std::string ann = Add("ann"), bob = Add("bob");
  EXPECT_THAT(Starts(), ::testing::ElementsAre(bob, ann));
  // What is held now counts, too, also by a run that this server did not see start.
  board_->Take({.run = "x", .name = "x", .user = "bob"}, {"cpu:0"});
  EXPECT_THAT(Starts(), ::testing::ElementsAre(bob));
  runs_.clock().Advance(std::chrono::seconds(60));
  EXPECT_THAT(Starts(), ::testing::ElementsAre(ann));
}

TEST_F(RunQueueTest, LimitsComeFromTheUsersTable) {
  Sql("INSERT INTO users (name, role, create_time, max_running) VALUES ('ann', 'member', 1, 1)");
  board_->Take({.run = "x", .name = "x", .user = "ann"}, {"cpu:0"});
  const std::string run = Add("ann");
  EXPECT_THAT(Starts(), IsEmpty());
  EXPECT_EQ(Asked(run).wait_reason(), "ann already runs 1 of at most 1");
}

TEST_F(RunQueueTest, StartsAreExpectedFromMeasuredSteps) {
  for (const char* device : {"cpu:0", "cpu:1"}) {
    const std::string running = Add("ann");
    runs_.StartAttempt(running);
    board_->Take({.run = running, .name = "big", .user = "ann"}, {device});
  }
  const std::string waiting = Add("ann");
  v1::Run asked = Asked(waiting);
  EXPECT_EQ(asked.queue_position(), 1);
  EXPECT_FALSE(asked.has_estimated_start_time());
  EXPECT_EQ(asked.wait_reason(), "waits for run big on cpu:0");
  // 180 steps, 10 in 20 s.
  Train(Add("ann"), 20, 10);
  asked = Asked(waiting);
  EXPECT_EQ(asked.wait_reason(), "waits for run big on cpu:0, about 6 min");
  const auto seconds =
      asked.estimated_start_time().seconds() - runs_.clock().WallMicros() / 1000000;
  EXPECT_NEAR(static_cast<double>(seconds), 360, 2);
}

TEST_F(RunQueueTest, WhoMadeRoomSaysForWhomFromTheFirstMomentOn) {
  const std::string urgent =
      Add("bob", [](v1::Run& run) { run.set_display_name("an urgent one"); });
  const std::string run = Add("ann");
  for (const char* device : {"cpu:0", "cpu:1"}) {
    board_->Take({.run = "x", .name = "big", .user = "bob"}, {device});
  }
  // As an attempt's end writes it: nobody has looked at the queue since.
  Sql("UPDATE runs SET stop_cause = 'preempted', stop_detail = '" + urgent +
      "', wait_reason = 'paused for an urgent one; it goes on from step 3' WHERE id = '" + run +
      "'");
  constexpr char kReason[] = "paused for an urgent one; waits for run big on cpu:0";
  EXPECT_EQ(Asked(run).wait_reason(), kReason);
  const auto queue = queue_->Describe(10);
  ASSERT_TRUE(queue.ok());
  for (const v1::QueueEntry& entry : queue->entries()) {
    if (entry.run() == run) {
      EXPECT_EQ(entry.wait_reason(), kReason);
    }
  }
  Sql("DELETE FROM run_specs WHERE run = '" + urgent + "'");
  Sql("DELETE FROM runs WHERE id = '" + urgent + "'");
  EXPECT_THAT(Asked(run).wait_reason(), ::testing::StartsWith("paused for " + urgent + "; "));
}

TEST_F(RunQueueTest, TheWholeQueueIsDescribedAsFarAsAskedFor) {
  Add("ann", [](v1::Run& run) { run.set_priority("low"); });
  Add("bob");
  Add("bob", [](v1::Run& run) { run.set_held(true); });
  const auto queue = queue_->Describe(2);
  ASSERT_TRUE(queue.ok());
  EXPECT_EQ(queue->total_size(), 3);
  ASSERT_EQ(queue->entries_size(), 2);
  EXPECT_EQ(queue->entries(0).user(), "bob");
  EXPECT_EQ(queue->entries(0).priority(), "normal");
  EXPECT_EQ(queue->entries(0).wait_reason(), "starts next");
  EXPECT_EQ(queue->entries(1).priority(), "low");
  ASSERT_EQ(queue->users_size(), 2);
  EXPECT_EQ(queue->users(1).queued(), 2);
}

}  // namespace
}  // namespace normlab::app
