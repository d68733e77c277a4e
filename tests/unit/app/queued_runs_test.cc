// Runs that are held, that wait for others, or whose whole experiment is cancelled.
#include "gmock/gmock.h"
#include "server/storage/dependencies.h"
#include "server/storage/experiments.h"
#include "server/storage/queue_changes.h"
#include "tests/unit/app/dispatcher_fixture.h"

namespace normlab::app {
namespace {

using ::testing::HasSubstr;

class QueuedRunsTest : public DispatcherTest {
 protected:
  struct Wanted {
    std::string after = {};
    std::string condition = "ok";
    bool held = false;
    std::string experiment = {};
    std::string user = "lab1";
  };
  std::string Add(const Wanted& wanted) {
    v1::Run run = runs_.MakeRun();
    run.set_user(wanted.user);
    run.set_held(wanted.held);
    run.set_experiment(wanted.experiment);
    if (!wanted.after.empty()) {
      run.add_after()->set_run(wanted.after);
      run.mutable_after(0)->set_condition(wanted.condition);
    }
    EXPECT_TRUE(Write([&](storage::WriteContext& context) {
                  return storage::InsertRun(context, run);
                }).ok());
    return run.id();
  }
  std::string AddExperiment(const std::string& user) {
    v1::Experiment experiment;
    experiment.set_id(runs_.MakeRun().id());
    experiment.set_user(user);
    EXPECT_TRUE(Write([&](storage::WriteContext& context) {
                  return storage::InsertExperiment(context, experiment);
                }).ok());
    return experiment.id();
  }
  absl::Status Write(const std::function<absl::Status(storage::WriteContext&)>& work) {
    return runs_.store().writer().Write(work);
  }
  executor::LaunchRequest NextLaunch() { return executor_->WaitForLaunch(++launches_); }
  // Trains what is launched next, to an end of that kind.
  std::string Train(worker::v1::Finished::Outcome outcome) {
    const executor::LaunchRequest launch = NextLaunch();
    const auto attached = Attach(launch);
    EXPECT_TRUE(attached.ok());
    EXPECT_TRUE(
        runs_.Append(attached->attempt_id, 1, {fakes::FinishedRecord(outcome, "as told")}).ok());
    executor_->Exit(launch.key, Code(0));
    return launch.key.run;
  }

  size_t launches_ = 0;
};

TEST_F(QueuedRunsTest, ARunStartsOnceTheOneBeforeItHasSucceeded) {
  const std::string first = Add({});
  const std::string second = Add({.after = first});
  const std::string third = Add({.after = second, .condition = "any"});
  Start(/*slots=*/3);
  EXPECT_EQ(Train(worker::v1::Finished::OUTCOME_SUCCEEDED), first);
  EXPECT_EQ(Train(worker::v1::Finished::OUTCOME_DIVERGED), second);
  EXPECT_EQ(Train(worker::v1::Finished::OUTCOME_SUCCEEDED), third);
  WaitForState(third, v1::Run::STATE_SUCCEEDED);
}

TEST_F(QueuedRunsTest, ARunWhoseConditionCannotBeMetIsCancelledWithTheEnd) {
  const std::string first = Add({});
  const std::string second = Add({.after = first});
  Start(/*slots=*/2);
  EXPECT_EQ(Train(worker::v1::Finished::OUTCOME_DIVERGED), first);
  const v1::Run cancelled = WaitForState(second, v1::Run::STATE_CANCELLED);
  EXPECT_THAT(cancelled.end_reason(), HasSubstr("after which it was to start, has diverged"));
  EXPECT_EQ(cancelled.attempts_size(), 0);
  const absl::Status retried = dispatcher_->Retry(second, "lab1", false);
  EXPECT_EQ(retried.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(retried.message(), HasSubstr("retry that one first"));
  ASSERT_TRUE(dispatcher_->Retry(first, "lab1", false).ok());
  EXPECT_EQ(runs_.Read(second).state(), v1::Run::STATE_CANCELLED);
  ASSERT_TRUE(dispatcher_->Retry(second, "lab1", false).ok());
  EXPECT_EQ(Train(worker::v1::Finished::OUTCOME_SUCCEEDED), first);
  EXPECT_EQ(Train(worker::v1::Finished::OUTCOME_SUCCEEDED), second);
}

TEST_F(QueuedRunsTest, AnEndThatNobodySawCancelsAtTheNextStart) {
  const std::string first = Add({});
  const std::string second = Add({.after = first});
  runs_.StartAttempt(first);
  // The executor finds no trace of the attempt's processes.
  Start();
  WaitForState(first, v1::Run::STATE_QUEUED);  // an interruption, which is no end
  EXPECT_EQ(runs_.Read(second).state(), v1::Run::STATE_QUEUED);
  ASSERT_TRUE(dispatcher_->Cancel(first, "lab1").ok());
  EXPECT_THAT(WaitForState(second, v1::Run::STATE_CANCELLED).end_reason(),
              HasSubstr("was cancelled"));
}

TEST_F(QueuedRunsTest, AHeldRunLetsOthersPassUntilItIsReleased) {
  const std::string held = Add({.held = true});
  const std::string other = Add({});
  Start();
  EXPECT_EQ(Train(worker::v1::Finished::OUTCOME_SUCCEEDED), other);
  WaitForState(other, v1::Run::STATE_SUCCEEDED);
  EXPECT_EQ(runs_.Read(held).state(), v1::Run::STATE_QUEUED);
  storage::QueueChange release;
  release.held = false;
  ASSERT_TRUE(Write([&](storage::WriteContext& context) {
                return storage::ChangeQueued(context, held, release);
              }).ok());
  dispatcher_->Wake();
  EXPECT_EQ(Train(worker::v1::Finished::OUTCOME_SUCCEEDED), held);
}

TEST_F(QueuedRunsTest, AnExperimentIsCancelledInOneGo) {
  const std::string experiment = AddExperiment("lab1");
  const std::string running = Add({.experiment = experiment});
  Start();
  const executor::LaunchRequest launch = NextLaunch();
  bool told = false;
  ASSERT_TRUE(Attach(launch, [&told] { told = true; }).ok());
  const std::string queued = Add({.experiment = experiment});
  const std::string waiting = Add({.after = queued, .experiment = experiment});
  const std::string other = Add({});
  EXPECT_EQ(dispatcher_->CancelExperiment(experiment, "lab2", false).code(),
            absl::StatusCode::kPermissionDenied);
  ASSERT_TRUE(dispatcher_->CancelExperiment(experiment, "lab1", false).ok());
  EXPECT_TRUE(told);
  EXPECT_EQ(runs_.Read(running).state(), v1::Run::STATE_CANCELLING);
  for (const std::string& run : {queued, waiting}) {
    EXPECT_EQ(runs_.Read(run).state(), v1::Run::STATE_CANCELLED);
    EXPECT_EQ(runs_.Read(run).end_reason(),
              "cancelled by lab1 with its experiment while it was queued");
  }
  executor_->Exit(launch.key, Code(0));
  WaitForState(running, v1::Run::STATE_CANCELLED);
  EXPECT_EQ(NextLaunch().key.run, other);
  EXPECT_TRUE(dispatcher_->CancelExperiment(experiment, "lab1", false).ok());  // nothing is left
  EXPECT_EQ(dispatcher_->CancelExperiment(other, "lab1", false).code(),
            absl::StatusCode::kNotFound);
}

TEST_F(QueuedRunsTest, AnEndThatTakesAnotherAlongIsToldOnce) {
  const std::string experiment = AddExperiment("lab1");
  const std::string older = Add({.experiment = experiment});
  const std::string newer = Add({.experiment = experiment});
  storage::QueueChange change;
  change.after.emplace().Add()->set_run(newer);
  Start(/*slots=*/0);
  ASSERT_TRUE(Write([&](storage::WriteContext& context) {
                return storage::ChangeQueued(context, older, change);
              }).ok());
  ASSERT_TRUE(dispatcher_->CancelExperiment(experiment, "lab1", false).ok());
  dispatcher_->Stop();
  ASSERT_TRUE(Write([](storage::WriteContext&) { return absl::OkStatus(); }).ok());
  int ends = 0;
  for (const domain::EventPtr& event : runs_.published()) ends += event->message().has_end();
  EXPECT_EQ(ends, 2);
  EXPECT_THAT(runs_.Read(older).end_reason(), HasSubstr("was cancelled"));
}

TEST_F(QueuedRunsTest, AnExperimentWithRunsOfOthersIsTheirsToo) {
  const std::string experiment = AddExperiment("lab1");
  const std::string mine = Add({.experiment = experiment});
  const std::string theirs = Add({.experiment = experiment, .user = "lab2"});
  Start(/*slots=*/0);
  const absl::Status refused = dispatcher_->CancelExperiment(experiment, "lab1", false);
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(refused.message(), HasSubstr("belongs to lab2"));
  EXPECT_EQ(runs_.Read(mine).state(), v1::Run::STATE_QUEUED);
  ASSERT_TRUE(dispatcher_->CancelExperiment(experiment, "boss", true).ok());
  EXPECT_EQ(runs_.Read(theirs).state(), v1::Run::STATE_CANCELLED);
}

}  // namespace
}  // namespace normlab::app
