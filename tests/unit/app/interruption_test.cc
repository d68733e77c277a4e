// What becomes of runs whose processes are killed or lost, and of ended ones that are tried again.
#include <signal.h>

#include "gmock/gmock.h"
#include "server/app/next_attempt.h"
#include "server/base/spool.h"
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

class InterruptionTest : public DispatcherTest {
 protected:
  // Attaches and trains from the step after `step` up to `last`, with a checkpoint of step
  // `checkpoint` unless that is 0.
  void Train(const LaunchRequest& launch, int64_t step, int64_t last, int64_t checkpoint) {
    const auto attached = Attach(launch);
    ASSERT_TRUE(attached.ok()) << attached.status();
    std::vector<std::string> records = {SeriesRecord({"loss"})};
    while (step < last) {
      records.push_back(StepRecord(++step, {1.0 / static_cast<double>(step)}));
      if (step != checkpoint) continue;
      records.push_back(CheckpointRecord(step));
      std::ofstream(CheckpointFile(launch.key.run, step)) << step;
    }
    ASSERT_TRUE(runs_.Append(attached->attempt_id, 1, records).ok());
  }
  std::filesystem::path CheckpointFile(const std::string& run, int64_t step) {
    return files_.Checkpoints(run) / ("step-" + std::to_string(step) + ".safetensors");
  }
  // The next launch, after the pause that precedes it.
  LaunchRequest Relaunch(size_t number) {
    for (int i = 0; i < 20'000 && executor_->launches() < number; ++i) {
      runs_.clock().Advance(std::chrono::seconds(1));
      dispatcher_->Wake();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return executor_->WaitForLaunch(number);
  }
  std::string ResumeFile(const LaunchRequest& launch) {
    return std::filesystem::path(Attach(launch)->assignment.resume_from()).filename();
  }
  static ExitReport Lost() {
    ExitReport lost;
    lost.lost = true;
    lost.detail = "no shepherd";
    return lost;
  }
};

TEST_F(InterruptionTest, AKilledRunWaitsAndGoesOnFromItsLatestCheckpoint) {
  const std::string run = runs_.AddRun();
  Start();
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  Train(launch, 0, 12, 10);
  executor_->Exit(launch.key, Signal(SIGKILL));
  const v1::Run waiting = WaitForState(run, v1::Run::STATE_QUEUED);
  EXPECT_THAT(waiting.wait_reason(), HasSubstr("signal 9 (SIGKILL) after step 12"));
  EXPECT_THAT(waiting.wait_reason(), HasSubstr("goes on from the checkpoint of step 10"));
  EXPECT_FALSE(waiting.has_exit_signal());
  EXPECT_FALSE(waiting.has_end_time());
  EXPECT_TRUE(BecomesFree(0));
  const LaunchRequest next = Relaunch(2);
  EXPECT_EQ(next.key.attempt, 2);
  EXPECT_EQ(ResumeFile(next), "step-10.safetensors");
  const v1::Run resumed = runs_.Read(run);
  EXPECT_EQ(resumed.progress().step(), 10);
  EXPECT_EQ(resumed.attempts(1).resumed_from_attempt(), 1);
  EXPECT_THAT(resumed.attempts(0).end_reason(), HasSubstr("SIGKILL"));
  EXPECT_EQ(resumed.wait_reason(), "");
}

TEST_F(InterruptionTest, EverySortOfInterruptionIsOne) {
  Start();
  struct Case {
    std::vector<std::string> records;
    ExitReport exit;
    const char* reason;
  };
  const std::vector<Case> cases = {
      {{}, Signal(SIGTERM), "SIGTERM"},
      {{}, Lost(), "no shepherd"},
      {{FinishedRecord(Finished::OUTCOME_ORPHANED, "no server for 600 s")}, Code(3), "no server"},
      {{FinishedRecord(Finished::OUTCOME_STOPPED, "SIGTERM")}, Code(0), "the trainer stopped"},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string run = runs_.AddRun();
    dispatcher_->Wake();
    const LaunchRequest launch = executor_->WaitForLaunch(i + 1);
    const auto attached = Attach(launch);
    ASSERT_TRUE(runs_.Append(attached->attempt_id, 1, cases[i].records).ok());
    executor_->Exit(launch.key, cases[i].exit);
    EXPECT_THAT(WaitForState(run, v1::Run::STATE_QUEUED).wait_reason(), HasSubstr(cases[i].reason));
    ASSERT_TRUE(dispatcher_->Cancel(run, "lab1").ok());
  }
}

TEST_F(InterruptionTest, TheRunSaysWhetherItGoesOnStartsAgainOrFails) {
  const std::string requeued = AddRunWith("requeue"), failed = AddRunWith("fail");
  Start(2);
  const LaunchRequest first = executor_->WaitForLaunch(1), second = executor_->WaitForLaunch(2);
  Train(first, 0, 12, 10);
  Train(second, 0, 12, 10);
  executor_->Exit(second.key, Signal(SIGKILL));
  const v1::Run ended = WaitForState(failed, v1::Run::STATE_FAILED);
  EXPECT_THAT(ended.end_reason(), HasSubstr("signal 9 (SIGKILL) after step 12"));
  EXPECT_EQ(ended.exit_signal(), SIGKILL);
  executor_->Exit(first.key, Signal(SIGKILL));
  EXPECT_THAT(WaitForState(requeued, v1::Run::STATE_QUEUED).wait_reason(),
              HasSubstr("starts from the beginning"));
  const LaunchRequest next = Relaunch(3);
  EXPECT_EQ(next.key.run, requeued);
  EXPECT_EQ(ResumeFile(next), "");
  EXPECT_EQ(runs_.Read(requeued).attempts(1).resumed_from_attempt(), 0);
  EXPECT_EQ(runs_.Read(requeued).progress().step(), 0);
}

// The third attempt of a run that was paused behind steps 10 and 20; it cannot read the latter's
// checkpoint and says so.
class UnreadableTest : public InterruptionTest {
 protected:
  void Begin() {
    Start();
    for (size_t i = 1; i <= 2; ++i) {
      const LaunchRequest launch = executor_->WaitForLaunch(i);
      PauseAfter(launch, *Attach(launch), static_cast<int64_t>(10 * i));
      ASSERT_TRUE(dispatcher_->Resume(run_, "lab1").ok());
    }
    third_ = executor_->WaitForLaunch(3);
    EXPECT_EQ(ResumeFile(third_), "step-20.safetensors");
  }
  // As the trainer does.
  void PutAside(int64_t step) {
    const std::filesystem::path file = CheckpointFile(run_, step);
    std::filesystem::rename(file, file.string() + ".unreadable");
  }
  void End() {
    const std::string record = FinishedRecord(Finished::OUTCOME_UNREADABLE, "20 is cut off");
    ASSERT_TRUE(runs_.Append(Attach(third_)->attempt_id, 1, {record}).ok());
    executor_->Exit(third_.key, Code(0));
  }

  const std::string run_ = AddRunWith("fail");  // nobody has interrupted it
  LaunchRequest third_;
};

TEST_F(UnreadableTest, TheOneBeforeItIsTakenAtOnce) {
  Begin();
  PutAside(20);
  End();
  EXPECT_EQ(ResumeFile(executor_->WaitForLaunch(4)), "step-10.safetensors");
  EXPECT_THAT(runs_.Read(run_).attempts(2).end_reason(), HasSubstr("20 is cut off"));
}

TEST_F(UnreadableTest, WithoutAnotherItStartsFromTheBeginning) {
  Begin();
  PutAside(10);
  PutAside(20);
  End();
  EXPECT_EQ(ResumeFile(executor_->WaitForLaunch(4)), "");
}

TEST_F(UnreadableTest, OneThatIsStillThereWouldBeFoundAgain) {
  Begin();
  End();
  EXPECT_THAT(WaitForState(run_, v1::Run::STATE_FAILED).end_reason(), HasSubstr("20 is cut off"));
}

TEST_F(UnreadableTest, WhoWantedItPausedOrCancelledGetsThat) {
  Begin();
  ASSERT_TRUE(dispatcher_->Pause(run_, "lab1").ok());
  PutAside(20);
  End();
  WaitForState(run_, v1::Run::STATE_PAUSED);
  ASSERT_TRUE(dispatcher_->Resume(run_, "lab1").ok());
  third_ = executor_->WaitForLaunch(4);
  EXPECT_EQ(ResumeFile(third_), "step-10.safetensors");
  ASSERT_TRUE(dispatcher_->Cancel(run_, "lab1").ok());
  PutAside(10);
  End();
  WaitForState(run_, v1::Run::STATE_CANCELLED);
}

TEST_F(InterruptionTest, ACheckpointWhoseFileIsGoneIsPassedOverAndThatIsSaid) {
  const std::string run = runs_.AddRun();
  Start();
  const LaunchRequest first = executor_->WaitForLaunch(1);
  Train(first, 0, 10, 10);
  executor_->Exit(first.key, Signal(SIGKILL));
  const LaunchRequest second = Relaunch(2);
  Train(second, 10, 20, 20);
  std::filesystem::remove(CheckpointFile(run, 20));
  executor_->Exit(second.key, Signal(SIGKILL));
  EXPECT_THAT(WaitForState(run, v1::Run::STATE_QUEUED).wait_reason(),
              HasSubstr("from the checkpoint of step 10 (the file of the checkpoint of step 20"));
  EXPECT_EQ(ResumeFile(Relaunch(3)), "step-10.safetensors");
}

TEST_F(InterruptionTest, WithoutACheckpointItStartsFromTheBeginning) {
  const std::string run = runs_.AddRun();
  Start();
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  Train(launch, 0, 5, 0);
  executor_->Exit(launch.key, Signal(SIGKILL));
  EXPECT_THAT(WaitForState(run, v1::Run::STATE_QUEUED).wait_reason(),
              HasSubstr("starts from the beginning (it had no checkpoint yet)"));
  EXPECT_EQ(ResumeFile(Relaunch(2)), "");
}

TEST_F(InterruptionTest, ACheckpointOfTheLastStepLeavesNothingToGoOnWith) {
  const std::string run = runs_.AddRun("auto", 10);
  Start();
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  Train(launch, 0, 10, 10);
  executor_->Exit(launch.key, Signal(SIGKILL));
  WaitForState(run, v1::Run::STATE_QUEUED);
  EXPECT_EQ(ResumeFile(Relaunch(2)), "");
}

TEST_F(InterruptionTest, ThreeInARowThatCameNoFurtherAreEnough) {
  const std::string run = runs_.AddRun();
  Start();
  LaunchRequest launch = executor_->WaitForLaunch(1);
  Train(launch, 0, 12, 10);
  executor_->Exit(launch.key, Signal(SIGKILL));
  for (size_t again = 2; again <= 3; ++again) {
    WaitForState(run, v1::Run::STATE_QUEUED);
    launch = Relaunch(again);
    Train(launch, 10, 15, 0);
    executor_->Exit(launch.key, Signal(SIGKILL));
  }
  WaitForState(run, v1::Run::STATE_QUEUED);
  launch = Relaunch(4);
  Train(launch, 10, 15, 0);
  executor_->Exit(launch.key, Signal(SIGKILL));
  const v1::Run failed = WaitForState(run, v1::Run::STATE_FAILED);
  EXPECT_THAT(failed.end_reason(), HasSubstr("3 times in a row without coming further"));
  EXPECT_THAT(failed.end_reason(), HasSubstr("SIGKILL"));
}

TEST_F(InterruptionTest, ARunThatComesFurtherEachTimeIsNeverGivenUp) {
  const std::string run = runs_.AddRun();
  Start();
  for (int64_t attempt = 1; attempt <= 6; ++attempt) {
    const LaunchRequest launch = attempt == 1 ? executor_->WaitForLaunch(1) : Relaunch(attempt);
    Train(launch, 0, attempt, 0);  // no checkpoint, but one step more than before
    executor_->Exit(launch.key, Signal(SIGKILL));
    WaitForState(run, v1::Run::STATE_QUEUED);
  }
}

TEST_F(InterruptionTest, PausesBetweenTriesGrowAndOthersUseThem) {
  EXPECT_EQ(PauseAfterInterruption(0), std::chrono::seconds(1));
  EXPECT_EQ(PauseAfterInterruption(1), std::chrono::seconds(5));
  EXPECT_EQ(PauseAfterInterruption(2), std::chrono::seconds(30));
  const std::string run = runs_.AddRun(), behind = runs_.AddRun();
  Start();
  executor_->Exit(executor_->WaitForLaunch(1).key, Signal(SIGKILL));
  const LaunchRequest other = executor_->WaitForLaunch(2);
  EXPECT_EQ(other.key.run, behind);
  EXPECT_EQ(runs_.Read(run).state(), v1::Run::STATE_QUEUED);
  executor_->Exit(other.key, Code(1));
  WaitForState(behind, v1::Run::STATE_FAILED);
  EXPECT_EQ(executor_->launches(), 2u) << "the clock stands still";
  EXPECT_EQ(Relaunch(3).key.run, run);
}

TEST_F(InterruptionTest, ARestartedServerKeepsThePause) {
  const std::string run = runs_.AddRun();
  Start();
  executor_->Exit(executor_->WaitForLaunch(1).key, Signal(SIGKILL));
  WaitForState(run, v1::Run::STATE_QUEUED);
  dispatcher_.reset();
  Start();
  dispatcher_->Wake();
  const std::string other = runs_.AddRun();
  dispatcher_->Wake();
  EXPECT_EQ(executor_->WaitForLaunch(1).key.run, other) << "the one before it is held back";
  executor_->Exit({other, 1}, Code(1));
  EXPECT_EQ(Relaunch(2).key.run, run);
}

TEST_F(InterruptionTest, ARunThatWasToPauseIsPaused) {
  const std::string run = runs_.AddRun(), failing = AddRunWith("fail");
  Start();
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  Train(launch, 0, 12, 10);
  ASSERT_TRUE(dispatcher_->Pause(run, "lab1").ok());
  executor_->Exit(launch.key, Signal(SIGKILL));
  const v1::Run paused = WaitForState(run, v1::Run::STATE_PAUSED);
  EXPECT_THAT(paused.attempts(0).end_reason(), HasSubstr("SIGKILL"));
  const LaunchRequest other = executor_->WaitForLaunch(2);
  Train(other, 0, 12, 10);
  ASSERT_TRUE(dispatcher_->Pause(failing, "lab1").ok());
  executor_->Exit(other.key, Signal(SIGKILL));
  WaitForState(failing, v1::Run::STATE_FAILED);
  ASSERT_TRUE(dispatcher_->Resume(run, "lab1").ok());
  EXPECT_EQ(ResumeFile(executor_->WaitForLaunch(3)), "step-10.safetensors");
}

TEST_F(InterruptionTest, ARunThatWasToBeCancelledIsCancelled) {
  Start();
  size_t launches = 0;
  for (const ExitReport& exit : {Signal(SIGKILL), Lost()}) {
    const std::string run = runs_.AddRun();
    dispatcher_->Wake();
    const LaunchRequest launch = executor_->WaitForLaunch(++launches);
    Train(launch, 0, 2, 0);
    ASSERT_TRUE(dispatcher_->Cancel(run, "lab1").ok());
    executor_->Exit(launch.key, exit);
    EXPECT_THAT(WaitForState(run, v1::Run::STATE_CANCELLED).end_reason(),
                HasSubstr("cancelled after step 2"));
  }
}

TEST_F(InterruptionTest, ACancelThatComesWhileAServerStartsReachesTheTrainer) {
  const std::string run = runs_.AddRun();
  Start();
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  ASSERT_TRUE(Attach(launch).ok());
  dispatcher_->Stop();
  dispatcher_.reset();
  // Between the look at what is active and the taking over, the API serves already.
  on_adopt_ = [&] { runs_.SetState(run, v1::Run::STATE_CANCELLING); };
  Start();
  EXPECT_THAT(executor_->terminated(), ::testing::ElementsAre(launch.key));
}

TEST_F(InterruptionTest, ARunningAttemptWithoutATraceIsLost) {
  const std::string run = runs_.AddRun();
  runs_.StartAttempt(run);
  Start();
  EXPECT_THAT(WaitForState(run, v1::Run::STATE_QUEUED).wait_reason(), HasSubstr("no trace"));
  EXPECT_EQ(Relaunch(1).key.attempt, 2);
}

TEST_F(InterruptionTest, RunTimeAddsUpOverAttemptsAndLeavesOutWaiting) {
  const std::string run = runs_.AddRun();
  Start();
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  ExitReport exit = Signal(SIGKILL);
  exit.elapsed_seconds = 100;
  executor_->Exit(launch.key, exit);
  WaitForState(run, v1::Run::STATE_QUEUED);
  runs_.clock().Advance(std::chrono::hours(5));
  const LaunchRequest next = Relaunch(2);
  exit = Code(1);
  exit.elapsed_seconds = 20.5;
  executor_->Exit(next.key, exit);
  const v1::Run ended = WaitForState(run, v1::Run::STATE_FAILED);
  EXPECT_EQ(ended.attempts(0).run_seconds(), 100);
  EXPECT_EQ(ended.run_seconds(), 120.5);
}

// --- retry ---

TEST_F(InterruptionTest, AnEndedRunIsTriedAgainFromItsCheckpointOrAfresh) {
  const std::string run = runs_.AddRun();
  Start();
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  Train(launch, 0, 12, 10);
  executor_->Exit(launch.key, Code(9));
  WaitForState(run, v1::Run::STATE_FAILED);
  ASSERT_TRUE(dispatcher_->Retry(run, "lab1", false).ok());
  const LaunchRequest second = executor_->WaitForLaunch(2);
  EXPECT_EQ(ResumeFile(second), "step-10.safetensors");
  const v1::Run again = runs_.Read(run);
  EXPECT_EQ(again.end_reason(), "");
  EXPECT_FALSE(again.has_exit_code());
  EXPECT_FALSE(again.has_end_time());
  executor_->Exit(second.key, Code(9));
  WaitForState(run, v1::Run::STATE_FAILED);
  ASSERT_TRUE(dispatcher_->Retry(run, "lab1", true).ok());
  const LaunchRequest third = executor_->WaitForLaunch(3);
  EXPECT_EQ(ResumeFile(third), "");
  EXPECT_EQ(runs_.Read(run).progress().step(), 0);
  executor_->Exit(third.key, Signal(SIGKILL));
  EXPECT_THAT(WaitForState(run, v1::Run::STATE_QUEUED).wait_reason(),
              HasSubstr("starts from the beginning"))
      << "and not from a checkpoint that was given up";
}

TEST_F(InterruptionTest, EveryEndButSuccessCanBeTriedAgain) {
  Start();
  size_t launches = 0;
  const auto end = [&](Finished::Outcome outcome, v1::Run::State state) {
    const std::string run = runs_.AddRun();
    dispatcher_->Wake();
    const LaunchRequest launch = executor_->WaitForLaunch(++launches);
    const auto attached = Attach(launch);
    EXPECT_TRUE(runs_.Append(attached->attempt_id, 1, {FinishedRecord(outcome)}).ok());
    executor_->Exit(launch.key, Code(0));
    WaitForState(run, state);
    return run;
  };
  const std::string diverged = end(Finished::OUTCOME_DIVERGED, v1::Run::STATE_DIVERGED);
  ASSERT_TRUE(dispatcher_->Retry(diverged, "lab1", false).ok());
  EXPECT_EQ(executor_->WaitForLaunch(++launches).key.run, diverged);
  EXPECT_THAT(std::string(dispatcher_->Retry(diverged, "lab1", false).message()),
              HasSubstr("only a run that has ended can be tried again"));
  ASSERT_TRUE(dispatcher_->Cancel(diverged, "lab1").ok());
  executor_->Exit({diverged, 2}, Signal(SIGKILL));
  WaitForState(diverged, v1::Run::STATE_CANCELLED);
  ASSERT_TRUE(dispatcher_->Retry(diverged, "lab1", false).ok());
  EXPECT_EQ(executor_->WaitForLaunch(++launches).key.attempt, 3);
  executor_->Exit({diverged, 3}, Code(1));
  WaitForState(diverged, v1::Run::STATE_FAILED);

  const std::string done = end(Finished::OUTCOME_SUCCEEDED, v1::Run::STATE_SUCCEEDED);
  const absl::Status refused = dispatcher_->Retry(done, "lab1", true);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("has succeeded"));
  EXPECT_EQ(dispatcher_->Retry("01J00000000000000000000000", "lab1", false).code(),
            absl::StatusCode::kNotFound);
}

TEST_F(InterruptionTest, ARunCancelledBeforeItsFirstAttemptCanBeTriedAgain) {
  const std::string first = runs_.AddRun(), second = runs_.AddRun();
  Start();
  executor_->WaitForLaunch(1);
  ASSERT_TRUE(dispatcher_->Cancel(second, "lab1").ok());
  ASSERT_TRUE(dispatcher_->Retry(second, "lab1", false).ok());
  executor_->Exit({first, 1}, Code(1));
  EXPECT_EQ(executor_->WaitForLaunch(2).key.run, second);
}

TEST_F(InterruptionTest, ATryThatSomebodyAskedForCountsInterruptionsAnew) {
  const std::string run = runs_.AddRun();
  Start();
  for (size_t i = 1; i <= 3; ++i) {
    const LaunchRequest launch = i == 1 ? executor_->WaitForLaunch(1) : Relaunch(i);
    executor_->Exit(launch.key, Signal(SIGKILL));
    WaitForState(run, i < 3 ? v1::Run::STATE_QUEUED : v1::Run::STATE_FAILED);
  }
  ASSERT_TRUE(dispatcher_->Retry(run, "lab1", false).ok());
  executor_->Exit(executor_->WaitForLaunch(4).key, Signal(SIGKILL));
  WaitForState(run, v1::Run::STATE_QUEUED);
}

}  // namespace
}  // namespace normlab::app
