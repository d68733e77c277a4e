// What the server stops by itself, and what it tries again: limits, faults, preemption.
#include <signal.h>

#include "gmock/gmock.h"
#include "tests/unit/app/dispatcher_fixture.h"

namespace normlab::app {
namespace {

using executor::ExitReport;
using executor::LaunchRequest;
using fakes::CheckpointRecord;
using fakes::FinishedRecord;
using fakes::SeriesRecord;
using fakes::StepRecord;
using ::testing::HasSubstr;
using ::testing::Not;
using worker::v1::Finished;

class RunStopsTest : public DispatcherTest {
 protected:
  static v1::RunSpec TimeLimit(double seconds) {
    v1::RunSpec spec;
    spec.set_time_limit(seconds);
    return spec;
  }
  static v1::RunSpec Retries(int64_t retries) {
    v1::RunSpec spec;
    spec.set_retries(retries);
    return spec;
  }
  static v1::RunSpec Preemptible() {
    v1::RunSpec spec;
    spec.set_preemptible(true);
    return spec;
  }
  void Pass(std::chrono::milliseconds time) {
    runs_.clock().Advance(time);
    dispatcher_->Wake();
  }
  // The trainer's word at its end, after one step and a checkpoint of it.
  void Leave(const LaunchRequest& launch, Finished::Outcome outcome, ExitReport exit,
             int64_t step = 5) {
    const auto attached = Attach(launch);
    ASSERT_TRUE(attached.ok()) << attached.status();
    std::vector<std::string> records = {SeriesRecord({"loss"}), StepRecord(step, {1}),
                                        CheckpointRecord(step)};
    std::ofstream(files_.Checkpoints(launch.key.run) /
                  ("step-" + std::to_string(step) + ".safetensors"))
        << step;
    if (outcome != Finished::OUTCOME_UNSPECIFIED) records.push_back(FinishedRecord(outcome));
    ASSERT_TRUE(runs_.Append(attached->attempt_id, 1, records).ok());
    executor_->Exit(launch.key, exit);
  }
  ExitReport After(double seconds, ExitReport report) {
    report.elapsed_seconds = seconds;
    return report;
  }
  bool Terminated(const executor::AttemptKey& key) {
    for (int i = 0; i < 20'000; ++i) {
      const auto terminated = executor_->terminated();
      if (std::find(terminated.begin(), terminated.end(), key) != terminated.end()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  // Passes the grace, which begins a moment after the run is seen to pause.
  void PassUntilTerminated(const executor::AttemptKey& key) {
    for (int i = 0; i < 20'000 && executor_->terminated().empty(); ++i) {
      Pass(std::chrono::milliseconds(100));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_TRUE(Terminated(key));
  }
  std::string ResumeFile(const LaunchRequest& launch) {
    return std::filesystem::path(Attach(launch)->assignment.resume_from()).filename();
  }
};

// --- time ---

TEST_F(RunStopsTest, ARunWhoseTimeIsOverWritesACheckpointAndHasTimedOut) {
  const std::string run = AddRunWith(TimeLimit(60));
  Start();
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  std::atomic<int> pauses = 0;
  ASSERT_TRUE(Attach(launch, [] {}, [&] { ++pauses; }).ok());
  Pass(std::chrono::milliseconds(59'999));
  Pass(std::chrono::milliseconds(1));
  WaitForState(run, v1::Run::STATE_PAUSING);
  for (int i = 0; i < 20'000 && pauses == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(pauses, 1);
  Leave(launch, Finished::OUTCOME_PAUSED, After(60.25, Code(0)));
  const v1::Run ended = WaitForState(run, v1::Run::STATE_TIMED_OUT);
  EXPECT_EQ(ended.end_reason(),
            "stopped after 60.2 s, its time_limit is 60.0 s, behind step 5 of 180");
  EXPECT_EQ(ended.attempts(0).end_reason(), ended.end_reason());
  EXPECT_TRUE(BecomesFree(0));
}

TEST_F(RunStopsTest, ATrainerThatDoesNotComeToACheckpointInTimeIsEnded) {
  const std::string run = AddRunWith(TimeLimit(60));
  Start();
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  ASSERT_TRUE(Attach(launch).ok());
  Pass(std::chrono::seconds(60));
  WaitForState(run, v1::Run::STATE_PAUSING);
  EXPECT_TRUE(executor_->terminated().empty());
  PassUntilTerminated(launch.key);
  executor_->Exit(launch.key, After(121, Signal(SIGKILL)));
  const v1::Run ended = WaitForState(run, v1::Run::STATE_TIMED_OUT);
  EXPECT_THAT(ended.end_reason(), HasSubstr("stopped after 121.0 s, its time_limit is 60.0 s"));
  EXPECT_THAT(ended.end_reason(), HasSubstr("did not end in time and has no checkpoint"));
  EXPECT_EQ(ended.exit_signal(), SIGKILL);
}

TEST_F(RunStopsTest, TimeOfAllAttemptsCountsAndNotThatBetweenThem) {
  const std::string run = AddRunWith(TimeLimit(60));
  Start();
  const LaunchRequest first = executor_->WaitForLaunch(1);
  ASSERT_TRUE(dispatcher_->Pause(run, "lab1").ok());
  Leave(first, Finished::OUTCOME_PAUSED, After(40, Code(0)));
  WaitForState(run, v1::Run::STATE_PAUSED);
  runs_.clock().Advance(std::chrono::hours(1));
  ASSERT_TRUE(dispatcher_->Resume(run, "lab1").ok());
  const LaunchRequest second = executor_->WaitForLaunch(2);
  ASSERT_TRUE(Attach(second).ok());
  Pass(std::chrono::milliseconds(19'900));
  EXPECT_EQ(runs_.Read(run).state(), v1::Run::STATE_RUNNING);
  Pass(std::chrono::milliseconds(100));
  WaitForState(run, v1::Run::STATE_PAUSING);
}

TEST_F(RunStopsTest, WhoeverEndedAfterHisTimeHasTimedOutHoweverItWas) {
  Start();
  const std::string interrupted = AddRunWith(TimeLimit(60));
  dispatcher_->Wake();
  // As while no server was there to look after it.
  Leave(executor_->WaitForLaunch(1), Finished::OUTCOME_UNSPECIFIED, After(61, Signal(SIGKILL)));
  EXPECT_THAT(WaitForState(interrupted, v1::Run::STATE_TIMED_OUT).end_reason(),
              HasSubstr("did not end in time, its latest checkpoint is of step 5"));
  v1::RunSpec spec = TimeLimit(60);
  spec.set_retries(3);
  const std::string failed = AddRunWith(spec);
  dispatcher_->Wake();
  Leave(executor_->WaitForLaunch(2), Finished::OUTCOME_UNSPECIFIED, After(61, Code(9)));
  EXPECT_THAT(WaitForState(failed, v1::Run::STATE_FAILED).end_reason(), HasSubstr("code 9"));
  const std::string done = AddRunWith(TimeLimit(60));
  dispatcher_->Wake();
  Leave(executor_->WaitForLaunch(3), Finished::OUTCOME_SUCCEEDED, After(61, Code(0)));
  WaitForState(done, v1::Run::STATE_SUCCEEDED);
}

TEST_F(RunStopsTest, ARestartForgetsNeitherTheLimitNorTheStop) {
  const std::string run = AddRunWith(TimeLimit(60));
  Start();
  LaunchRequest launch = executor_->WaitForLaunch(1);
  ASSERT_TRUE(Attach(launch).ok());
  dispatcher_.reset();
  Start();
  Pass(std::chrono::seconds(60));
  WaitForState(run, v1::Run::STATE_PAUSING);
  dispatcher_.reset();
  Start();
  PassUntilTerminated(launch.key);  // the grace begins anew
  executor_->Exit(launch.key, After(130, Signal(SIGKILL)));
  WaitForState(run, v1::Run::STATE_TIMED_OUT);
}

TEST_F(RunStopsTest, ATryThatSomebodyAskedForHasItsTimeAnew) {
  const std::string run = AddRunWith(TimeLimit(60));
  Start();
  Leave(executor_->WaitForLaunch(1), Finished::OUTCOME_UNSPECIFIED, After(61, Signal(SIGKILL)));
  WaitForState(run, v1::Run::STATE_TIMED_OUT);
  ASSERT_TRUE(dispatcher_->Retry(run, "lab1", false).ok());
  const LaunchRequest second = executor_->WaitForLaunch(2);
  EXPECT_EQ(ResumeFile(second), "step-5.safetensors");
  Pass(std::chrono::seconds(59));
  EXPECT_EQ(runs_.Read(run).state(), v1::Run::STATE_RUNNING);
  Pass(std::chrono::seconds(1));
  WaitForState(run, v1::Run::STATE_PAUSING);
}

TEST_F(RunStopsTest, ACancelIsStrongerThanATimeThatIsOver) {
  const std::string run = AddRunWith(TimeLimit(60));
  Start();
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  ASSERT_TRUE(Attach(launch).ok());
  Pass(std::chrono::seconds(60));
  WaitForState(run, v1::Run::STATE_PAUSING);
  ASSERT_TRUE(dispatcher_->Cancel(run, "lab1").ok());
  executor_->Exit(launch.key, After(61, Signal(SIGTERM)));
  WaitForState(run, v1::Run::STATE_CANCELLED);
}

// --- steps ---

TEST_F(RunStopsTest, TheAssignmentHasTheStepLimitAndTheEndItsReason) {
  v1::RunSpec spec;
  spec.set_step_limit(100);
  const std::string run = AddRunWith(spec);
  Start();
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  EXPECT_EQ(Attach(launch)->assignment.step_limit(), 100);
  Leave(launch, Finished::OUTCOME_LIMIT, Code(0), 100);
  WaitForState(run, v1::Run::STATE_TIMED_OUT);
  ASSERT_TRUE(dispatcher_->Retry(run, "lab1", false).ok());
  const LaunchRequest second = executor_->WaitForLaunch(2);
  EXPECT_EQ(Attach(second)->assignment.step_limit(), 200) << "as many steps once more";
}

TEST_F(RunStopsTest, OneThatWasKilledAtItsStepLimitGoesNoFurther) {
  v1::RunSpec spec;
  spec.set_step_limit(100);
  const std::string run = AddRunWith(spec);
  Start();
  Leave(executor_->WaitForLaunch(1), Finished::OUTCOME_UNSPECIFIED, Signal(SIGKILL), 100);
  EXPECT_EQ(WaitForState(run, v1::Run::STATE_TIMED_OUT).end_reason(),
            "stopped behind step 100, its step_limit, of 180");
}

// --- retries ---

TEST_F(RunStopsTest, AFailedRunIsTriedAgainAfterPausesThatDouble) {
  const std::string run = AddRunWith(Retries(2));
  Start();
  Leave(executor_->WaitForLaunch(1), Finished::OUTCOME_UNSPECIFIED, Code(9));
  v1::Run waiting = WaitForState(run, v1::Run::STATE_QUEUED);
  EXPECT_THAT(waiting.wait_reason(), HasSubstr("tried again in 10 s (1 of 2): "));
  EXPECT_THAT(waiting.wait_reason(), HasSubstr("code 9"));
  EXPECT_FALSE(waiting.has_exit_code());
  Pass(std::chrono::milliseconds(9'999));
  const std::string other = runs_.AddRun();
  dispatcher_->Wake();
  EXPECT_EQ(executor_->WaitForLaunch(2).key.run, other) << "others use the device meanwhile";
  executor_->Exit({other, 1}, Code(1));
  WaitForState(other, v1::Run::STATE_FAILED);
  EXPECT_EQ(runs_.Read(run).state(), v1::Run::STATE_QUEUED);
  Pass(std::chrono::milliseconds(1));
  const LaunchRequest second = executor_->WaitForLaunch(3);
  EXPECT_EQ(ResumeFile(second), "step-5.safetensors");
  executor_->Exit(second.key, Code(9));
  waiting = WaitForState(run, v1::Run::STATE_QUEUED);
  EXPECT_THAT(waiting.wait_reason(), HasSubstr("tried again in 20 s (2 of 2): "));
  Pass(std::chrono::seconds(20));
  executor_->Exit(executor_->WaitForLaunch(4).key, Code(9));
  const v1::Run failed = WaitForState(run, v1::Run::STATE_FAILED);
  EXPECT_THAT(failed.end_reason(), HasSubstr("(tried again 2 of 2 times)"));
  EXPECT_EQ(failed.exit_code(), 9);
  ASSERT_TRUE(dispatcher_->Retry(run, "lab1", false).ok());
  executor_->Exit(executor_->WaitForLaunch(5).key, Code(9));
  EXPECT_THAT(WaitForState(run, v1::Run::STATE_QUEUED).wait_reason(), HasSubstr("(1 of 2)"))
      << "asked for by a person it has its retries anew";
}

TEST_F(RunStopsTest, ARestartKeepsTheRestOfThePause) {
  const std::string run = AddRunWith(Retries(2));
  Start();
  executor_->Exit(executor_->WaitForLaunch(1).key, Code(9));
  WaitForState(run, v1::Run::STATE_QUEUED);
  runs_.clock().Advance(std::chrono::seconds(6));
  dispatcher_.reset();
  Start();
  const std::string other = runs_.AddRun();
  dispatcher_->Wake();
  EXPECT_EQ(executor_->WaitForLaunch(1).key.run, other);
  executor_->Exit({other, 1}, Code(1));
  WaitForState(other, v1::Run::STATE_FAILED);
  Pass(std::chrono::seconds(4));
  EXPECT_EQ(executor_->WaitForLaunch(2).key.run, run);
}

TEST_F(RunStopsTest, OneThatWaitsForItsNextTryCanBeCancelledAndTriedAtOnce) {
  const std::string run = AddRunWith(Retries(2));
  Start();
  executor_->Exit(executor_->WaitForLaunch(1).key, Code(9));
  WaitForState(run, v1::Run::STATE_QUEUED);
  ASSERT_TRUE(dispatcher_->Cancel(run, "lab1").ok());
  EXPECT_EQ(runs_.Read(run).state(), v1::Run::STATE_CANCELLED);
  ASSERT_TRUE(dispatcher_->Retry(run, "lab1", false).ok());
  EXPECT_EQ(executor_->WaitForLaunch(2).key.run, run) << "no clock has moved";
}

TEST_F(RunStopsTest, ADivergedRunIsNotTriedAgainNorOneThatNeverStarted) {
  Start();
  const std::string diverged = AddRunWith(Retries(2));
  dispatcher_->Wake();
  Leave(executor_->WaitForLaunch(1), Finished::OUTCOME_DIVERGED, Code(0));
  WaitForState(diverged, v1::Run::STATE_DIVERGED);
  executor_->Refuse(absl::FailedPreconditionError("there is no program"));
  const std::string never = AddRunWith(Retries(2));
  dispatcher_->Wake();
  WaitForState(never, v1::Run::STATE_FAILED);
}

// --- preemption ---

TEST_F(RunStopsTest, APreemptedRunGoesBackIntoTheQueueAndOnFromItsCheckpoint) {
  const std::string run = AddRunWith(Preemptible()), other = AddRunWith({}, "an urgent one");
  Start();
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  int pauses = 0;
  ASSERT_TRUE(Attach(launch, [] {}, [&] { ++pauses; }).ok());
  ASSERT_TRUE(dispatcher_->Preempt(run, other).ok());
  EXPECT_EQ(pauses, 1);
  EXPECT_EQ(runs_.Read(run).state(), v1::Run::STATE_PAUSING);
  EXPECT_EQ(dispatcher_->Preempt(run, other).code(), absl::StatusCode::kFailedPrecondition);
  Leave(launch, Finished::OUTCOME_PAUSED, Code(0));
  // The plan may start it at once; that it paused is with its attempt.
  const LaunchRequest second = executor_->WaitForLaunch(2);
  EXPECT_EQ(second.key.run, run) << "at its old place";
  EXPECT_EQ(ResumeFile(second), "step-5.safetensors");
  EXPECT_EQ(runs_.Read(run).attempts(0).end_reason(), "paused for an urgent one");
}

TEST_F(RunStopsTest, ItSaysForWhomItWasPausedWhileItWaits) {
  const std::string run = AddRunWith(Preemptible());
  Start();
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  ASSERT_TRUE(Attach(launch).ok());
  const std::string other = AddRunWith({}, "an urgent one");
  ASSERT_TRUE(dispatcher_->Preempt(run, other).ok());
  // Another one has the device by then.
  devices_->Take({.run = "elsewhere", .name = "elsewhere"}, {"cpu:0"});
  Leave(launch, Finished::OUTCOME_PAUSED, Code(0));
  for (int i = 0; i < 20'000; ++i) {
    if (runs_.Read(run).state() == v1::Run::STATE_QUEUED) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const v1::Run waiting = runs_.Read(run);
  EXPECT_EQ(waiting.state(), v1::Run::STATE_QUEUED);
  EXPECT_THAT(waiting.wait_reason(), HasSubstr("paused for an urgent one; "));
}

TEST_F(RunStopsTest, OneThatDoesNotMakeRoomInTimeIsEndedAndGoesOnAllTheSame) {
  const std::string run = AddRunWith(Preemptible());
  Start();
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  ASSERT_TRUE(Attach(launch).ok());
  ASSERT_TRUE(dispatcher_->Preempt(run, "gone").ok());
  PassUntilTerminated(launch.key);
  Leave(launch, Finished::OUTCOME_UNSPECIFIED, Signal(SIGKILL));
  EXPECT_EQ(ResumeFile(executor_->WaitForLaunch(2)), "step-5.safetensors");
  EXPECT_THAT(runs_.Read(run).attempts(0).end_reason(), HasSubstr("paused for gone; "));
}

TEST_F(RunStopsTest, OnlyAPreemptibleRunningOneMakesRoom) {
  const std::string firm = runs_.AddRun(), waiting = AddRunWith(Preemptible());
  Start();
  executor_->WaitForLaunch(1);
  EXPECT_THAT(std::string(dispatcher_->Preempt(firm, waiting).message()),
              HasSubstr("not preemptible"));
  EXPECT_EQ(dispatcher_->Preempt(waiting, firm).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(dispatcher_->Preempt("01J00000000000000000000000", firm).code(),
            absl::StatusCode::kNotFound);
}

TEST_F(RunStopsTest, APersonsWishCountsMoreThanThatItMakesRoom) {
  const std::string paused = AddRunWith(Preemptible()), cancelled = AddRunWith(Preemptible());
  Start(2);
  const LaunchRequest first = executor_->WaitForLaunch(1), second = executor_->WaitForLaunch(2);
  ASSERT_TRUE(Attach(first).ok());
  ASSERT_TRUE(Attach(second).ok());
  ASSERT_TRUE(dispatcher_->Preempt(paused, "another").ok());
  ASSERT_TRUE(dispatcher_->Preempt(cancelled, "another").ok());
  ASSERT_TRUE(dispatcher_->Pause(paused, "lab1").ok());
  ASSERT_TRUE(dispatcher_->Cancel(cancelled, "lab1").ok());
  Leave(first, Finished::OUTCOME_PAUSED, Code(0));
  Leave(second, Finished::OUTCOME_STOPPED, Code(0));
  WaitForState(paused, v1::Run::STATE_PAUSED);
  WaitForState(cancelled, v1::Run::STATE_CANCELLED);
}

TEST_F(RunStopsTest, ARestartForgetsNotThatItMakesRoom) {
  const std::string run = AddRunWith(Preemptible());
  Start();
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  ASSERT_TRUE(Attach(launch).ok());
  ASSERT_TRUE(dispatcher_->Preempt(run, "another").ok());
  dispatcher_.reset();
  Start();
  int pauses = 0;
  ASSERT_TRUE(Attach(launch, [] {}, [&] { ++pauses; }).ok());
  EXPECT_EQ(pauses, 1) << "its trainer is told again";
  Leave(launch, Finished::OUTCOME_PAUSED, Code(0));
  EXPECT_EQ(executor_->WaitForLaunch(1).key, (executor::AttemptKey{run, 2}));
}

// --- a stop of the server ---

TEST_F(RunStopsTest, AServerThatStopsPutsItsRunsBackAndStartsNoOther) {
  const std::string first = runs_.AddRun(), second = runs_.AddRun();
  Start();
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  int pauses = 0;
  ASSERT_TRUE(Attach(launch, [] {}, [&] { ++pauses; }).ok());
  EXPECT_EQ(dispatcher_->StopRuns().value(), 1u);
  EXPECT_EQ(dispatcher_->StopRuns().value(), 1u);
  EXPECT_EQ(pauses, 1) << "it is told once";
  Leave(launch, Finished::OUTCOME_PAUSED, Code(0));
  EXPECT_THAT(WaitForState(first, v1::Run::STATE_QUEUED).wait_reason(),
              HasSubstr("the server was stopped; it goes on from the checkpoint of step 5"));
  for (int i = 0; i < 20'000 && dispatcher_->StopRuns().value() > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  dispatcher_->Wake();
  dispatcher_.reset();
  EXPECT_EQ(runs_.Read(first).attempts_size(), 1);
  EXPECT_EQ(runs_.Read(second).attempts_size(), 0);
  Start();
  EXPECT_EQ(executor_->WaitForLaunch(1).key, (executor::AttemptKey{first, 2}));
  EXPECT_EQ(runs_.Read(second).state(), v1::Run::STATE_QUEUED);
}

// --- early ---

TEST_F(RunStopsTest, ARunThatIsStoppedEarlyIsCancelledWithTheReason) {
  const std::string run = runs_.AddRun(), waiting = runs_.AddRun();
  Start();
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  ASSERT_TRUE(dispatcher_->StopEarly(run, "its loss is above the median").ok());
  ASSERT_TRUE(dispatcher_->StopEarly(waiting, "likewise").ok());
  EXPECT_EQ(runs_.Read(waiting).end_reason(), "likewise");
  ASSERT_TRUE(Terminated(launch.key));
  executor_->Exit(launch.key, Signal(SIGTERM));
  EXPECT_EQ(WaitForState(run, v1::Run::STATE_CANCELLED).end_reason(),
            "its loss is above the median");
}

}  // namespace
}  // namespace normlab::app
