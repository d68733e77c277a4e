#include "server/app/dispatcher.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/spool.h"
#include "tests/unit/app/dispatcher_fixture.h"

namespace normlab::app {
namespace {

using executor::ExitReport;
using fakes::CheckpointRecord;
using fakes::FinishedRecord;
using fakes::SeriesRecord;
using fakes::StepRecord;
using ::testing::HasSubstr;
using worker::v1::Finished;

TEST_F(DispatcherTest, ARunGoesFromQueuedToSucceededAndTheNextStarts) {
  const std::string first = runs_.AddRun(), second = runs_.AddRun();
  Start();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  EXPECT_EQ(launch.key.run, first);
  EXPECT_EQ(launch.device, "cpu:0");
  const auto attached = Attach(launch);
  ASSERT_TRUE(attached.ok());
  EXPECT_EQ(runs_.Read(first).state(), v1::Run::STATE_RUNNING);
  EXPECT_EQ(runs_.Read(second).state(), v1::Run::STATE_QUEUED);
  ASSERT_TRUE(runs_
                  .Append(attached->attempt_id, 1,
                          {SeriesRecord({"loss"}), StepRecord(1, {1}),
                           FinishedRecord(Finished::OUTCOME_SUCCEEDED)})
                  .ok());
  executor_->Exit(launch.key, Code(0));
  EXPECT_EQ(executor_->WaitForLaunch(2).key.run, second);
  EXPECT_EQ(runs_.Read(first).state(), v1::Run::STATE_SUCCEEDED);
}

TEST_F(DispatcherTest, KilledTrainerFailsWithItsSignalAndItsSpoolIsReadOut) {
  const std::string run = AddRunWith("fail");
  Start();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  ASSERT_TRUE(Spool::Create(launch.directory / "spool", Spool::kDefaultCapacity).ok());
  {
    auto spool = Spool::Open(launch.directory / "spool").value();
    ASSERT_TRUE(spool->Append(SeriesRecord({"loss"})).ok());
    ASSERT_TRUE(spool->Append(StepRecord(1, {4})).ok());
    ASSERT_TRUE(spool->Append(StepRecord(2, {3})).ok());
  }
  const auto attached = Attach(launch);
  ASSERT_TRUE(
      runs_.Append(attached->attempt_id, 1, {SeriesRecord({"loss"}), StepRecord(1, {4})}).ok());
  executor_->Exit(launch.key, Signal(9));
  const v1::Run ended = WaitForState(run, v1::Run::STATE_FAILED);
  EXPECT_THAT(ended.end_reason(), HasSubstr("signal 9 (SIGKILL) after step 2"));
  EXPECT_EQ(ended.exit_signal(), 9);
  EXPECT_EQ(ended.progress().step(), 2);
}

TEST_F(DispatcherTest, EachWayToEndHasItsState) {
  struct Case {
    std::vector<std::string> records;
    ExitReport exit;
    v1::Run::State state;
    std::string reason;
  };
  ExitReport lost;
  lost.lost = true;
  lost.detail = "no shepherd";
  const std::vector<Case> cases = {
      {{FinishedRecord(Finished::OUTCOME_DIVERGED, "loss is NaN at step 3")},
       Code(0),
       v1::Run::STATE_DIVERGED,
       "NaN at step 3"},
      {{FinishedRecord(Finished::OUTCOME_FAILED, "cannot allocate")},
       Code(1),
       v1::Run::STATE_FAILED,
       "cannot allocate"},
      {{FinishedRecord(Finished::OUTCOME_STOPPED)},
       Code(0),
       v1::Run::STATE_FAILED,
       "from outside normlab"},
      {{}, Code(3), v1::Run::STATE_FAILED, "code 3"},
      {{}, Signal(11), v1::Run::STATE_FAILED, "SIGSEGV"},
      {{}, lost, v1::Run::STATE_FAILED, "no shepherd"},
  };
  Start();
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string run = AddRunWith("fail");
    dispatcher_->Wake();
    const executor::LaunchRequest launch = executor_->WaitForLaunch(i + 1);
    const auto attached = Attach(launch);
    ASSERT_TRUE(attached.ok());
    if (!cases[i].records.empty()) {
      ASSERT_TRUE(runs_.Append(attached->attempt_id, 1, cases[i].records).ok());
    }
    executor_->Exit(launch.key, cases[i].exit);
    EXPECT_THAT(WaitForState(run, cases[i].state).end_reason(), HasSubstr(cases[i].reason));
  }
}

TEST_F(DispatcherTest, CancelOfAQueuedRunEndsItAtOnceAndItIsNeverStarted) {
  const std::string first = runs_.AddRun(), second = runs_.AddRun();
  Start();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  ASSERT_TRUE(dispatcher_->Cancel(second, "lab1").ok());
  EXPECT_EQ(runs_.Read(second).state(), v1::Run::STATE_CANCELLED);
  EXPECT_EQ(dispatcher_->Cancel(second, "lab1").code(), absl::StatusCode::kFailedPrecondition);
  executor_->Exit(launch.key, Code(0));
  WaitForState(first, v1::Run::STATE_FAILED);
  const std::string third = runs_.AddRun();
  dispatcher_->Wake();
  EXPECT_EQ(executor_->WaitForLaunch(2).key.run, third);
}

TEST_F(DispatcherTest, CancelOfARunningRunStopsItsTrainer) {
  const std::string run = runs_.AddRun();
  Start();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  int stops = 0;
  const auto attached = Attach(launch, [&] { ++stops; });
  ASSERT_TRUE(dispatcher_->Cancel(run, "lab1").ok());
  EXPECT_EQ(runs_.Read(run).state(), v1::Run::STATE_CANCELLING);
  EXPECT_EQ(stops, 1);
  EXPECT_EQ(executor_->terminated().size(), 1u);
  executor_->Exit(launch.key, Signal(15));
  WaitForState(run, v1::Run::STATE_CANCELLED);
}

TEST_F(DispatcherTest, APausedRunGivesItsDeviceToTheNextAndGoesOnFromItsCheckpoint) {
  const std::string first = runs_.AddRun(), second = runs_.AddRun();
  Start();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  int stops = 0, pauses = 0;
  const auto attached = Attach(
      launch, [&] { ++stops; }, [&] { ++pauses; });
  EXPECT_EQ(attached->assignment.resume_from(), "");
  EXPECT_EQ(attached->assignment.checkpoint_directory(), files_.Checkpoints(first));
  EXPECT_EQ(dispatcher_->Resume(first, "lab1").code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(dispatcher_->Pause(first, "lab1").ok());
  EXPECT_EQ(runs_.Read(first).state(), v1::Run::STATE_PAUSING);
  EXPECT_EQ(pauses, 1);
  EXPECT_EQ(stops, 0);
  EXPECT_EQ(executor_->terminated().size(), 0u) << "a checkpoint takes its time";
  EXPECT_TRUE(dispatcher_->Pause(first, "lab1").ok()) << "asking again changes nothing";
  EXPECT_THAT(std::string(dispatcher_->Resume(first, "lab1").message()),
              HasSubstr("is pausing still"));
  PauseAfter(launch, *attached, 90);
  EXPECT_FALSE(runs_.Read(first).has_end_time());
  EXPECT_FALSE(runs_.Read(first).has_exit_code());
  EXPECT_TRUE(dispatcher_->Pause(first, "lab1").ok());

  const executor::LaunchRequest other = executor_->WaitForLaunch(2);
  EXPECT_EQ(other.key.run, second);
  ASSERT_TRUE(dispatcher_->Resume(first, "lab1").ok());
  EXPECT_EQ(runs_.Read(first).state(), v1::Run::STATE_QUEUED);
  executor_->Exit(other.key, Code(1));
  const executor::LaunchRequest next = executor_->WaitForLaunch(3);
  EXPECT_EQ(next.key.run, first);
  EXPECT_EQ(next.key.attempt, 2);
  const auto resumed = Attach(next);
  EXPECT_EQ(resumed->assignment.resume_from(), files_.Checkpoints(first) / "step-90.safetensors");
  EXPECT_EQ(runs_.Read(first).attempts(1).resumed_from_step(), 90);
  PauseAfter(next, *resumed, 120);
  ASSERT_TRUE(dispatcher_->Resume(first, "lab1").ok());
  EXPECT_EQ(Attach(executor_->WaitForLaunch(4))->assignment.resume_from(),
            files_.Checkpoints(first) / "step-120.safetensors");
}

TEST_F(DispatcherTest, OnlyARunThatTrainsIsMeasuredAndItStaysAsItIs) {
  const std::string running = runs_.AddRun(), queued = runs_.AddRun();
  Start();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  const auto refusal = [&](const std::string& run) {
    const absl::Status status = dispatcher_->Probe(run, "lab1");
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(running), HasSubstr("is starting; only a run that trains"));
  int probes = 0;
  bool connected = true;
  const auto attached = Attach(
      launch, [] {}, [] {},
      [&] {
        ++probes;
        return connected;
      });
  ASSERT_TRUE(attached.ok());
  const std::string before = runs_.Read(running).DebugString();
  EXPECT_TRUE(dispatcher_->Probe(running, "lab1").ok());
  EXPECT_TRUE(dispatcher_->Probe(running, "lab1").ok()) << "as often as one likes";
  EXPECT_EQ(probes, 2);
  connected = false;
  EXPECT_THAT(refusal(running), HasSubstr("is not connected just now"));
  EXPECT_EQ(runs_.Read(running).DebugString(), before);

  EXPECT_THAT(refusal(queued), HasSubstr("is queued; only a run that trains"));
  ASSERT_TRUE(dispatcher_->Pause(running, "lab1").ok());
  EXPECT_THAT(refusal(running), HasSubstr("is pausing"));
  PauseAfter(launch, *attached, 3);
  EXPECT_THAT(refusal(running), HasSubstr("is paused"));
  ASSERT_TRUE(dispatcher_->Cancel(running, "lab1").ok());
  EXPECT_THAT(refusal(running), HasSubstr("has already ended (cancelled)"));
  EXPECT_EQ(probes, 3) << "none of them reached the trainer";
  EXPECT_EQ(dispatcher_->Probe("01J00000000000000000000000", "lab1").code(),
            absl::StatusCode::kNotFound);
}

TEST_F(DispatcherTest, ARunWhoseTrainerHasNotCalledYetIsNotMeasured) {
  const std::string run = runs_.AddRun();
  Start();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  ASSERT_TRUE(Attach(launch).ok());
  dispatcher_->Stop();
  dispatcher_.reset();
  Start();  // a server that has not met the living trainer
  EXPECT_EQ(runs_.Read(run).state(), v1::Run::STATE_RUNNING);
  EXPECT_THAT(std::string(dispatcher_->Probe(run, "lab1").message()),
              HasSubstr("is not connected just now"));
  ASSERT_TRUE(Attach(launch).ok());
  EXPECT_TRUE(dispatcher_->Probe(run, "lab1").ok());
}

TEST_F(DispatcherTest, AQueuedRunIsPausedAtOnceAndTheOneBehindItStarts) {
  const std::string first = runs_.AddRun(), second = runs_.AddRun(), third = runs_.AddRun();
  Start();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  ASSERT_TRUE(dispatcher_->Pause(second, "lab1").ok());
  EXPECT_EQ(runs_.Read(second).state(), v1::Run::STATE_PAUSED);
  EXPECT_EQ(runs_.Read(second).wait_reason(), "");
  executor_->Exit(launch.key, Code(1));
  EXPECT_EQ(executor_->WaitForLaunch(2).key.run, third);
  ASSERT_TRUE(dispatcher_->Resume(second, "lab1").ok());
  executor_->Exit({third, 1}, Code(1));
  const executor::LaunchRequest resumed = executor_->WaitForLaunch(3);
  EXPECT_EQ(resumed.key.run, second);
  EXPECT_EQ(Attach(resumed)->assignment.resume_from(), "") << "it starts afresh";
}

TEST_F(DispatcherTest, APauseFindsATrainerThatAttachesLater) {
  const std::string run = runs_.AddRun();
  Start();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  ASSERT_TRUE(dispatcher_->Pause(run, "lab1").ok());
  EXPECT_EQ(runs_.Read(run).state(), v1::Run::STATE_PAUSING);
  int pauses = 0;
  const auto attached = Attach(
      launch, [] {}, [&] { ++pauses; });
  EXPECT_EQ(pauses, 1);
  EXPECT_EQ(runs_.Read(run).state(), v1::Run::STATE_PAUSING);
  PauseAfter(launch, *attached, 1);
}

TEST_F(DispatcherTest, ARunThatEndsWhilePausingHasItsTrueEnd) {
  struct Case {
    std::vector<std::string> records;
    ExitReport exit;
    v1::Run::State state;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {{FinishedRecord(Finished::OUTCOME_SUCCEEDED)}, Code(0), v1::Run::STATE_SUCCEEDED, ""},
      {{FinishedRecord(Finished::OUTCOME_DIVERGED, "loss is NaN")},
       Code(0),
       v1::Run::STATE_DIVERGED,
       "NaN"},
      {{FinishedRecord(Finished::OUTCOME_FAILED, "cannot write the checkpoint")},
       Code(1),
       v1::Run::STATE_FAILED,
       "cannot write the checkpoint"},
      {{FinishedRecord(Finished::OUTCOME_PAUSED)},
       Code(0),
       v1::Run::STATE_FAILED,
       "without a checkpoint"},
      {{}, Signal(9), v1::Run::STATE_FAILED, "SIGKILL"},
  };
  Start();
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string run = AddRunWith("fail");
    dispatcher_->Wake();
    const executor::LaunchRequest launch = executor_->WaitForLaunch(i + 1);
    const auto attached = Attach(launch);
    ASSERT_TRUE(dispatcher_->Pause(run, "lab1").ok());
    if (!cases[i].records.empty()) {
      ASSERT_TRUE(runs_.Append(attached->attempt_id, 1, cases[i].records).ok());
    }
    executor_->Exit(launch.key, cases[i].exit);
    EXPECT_THAT(WaitForState(run, cases[i].state).end_reason(), HasSubstr(cases[i].reason));
    const absl::Status late = dispatcher_->Pause(run, "lab1");
    EXPECT_EQ(late.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(late.message()), HasSubstr("has already ended"));
    EXPECT_EQ(dispatcher_->Resume(run, "lab1").code(), absl::StatusCode::kFailedPrecondition);
  }
}

TEST_F(DispatcherTest, PausingAndPausedRunsCanBeCancelled) {
  const std::string run = runs_.AddRun();
  Start();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  int stops = 0;
  const auto attached = Attach(launch, [&] { ++stops; });
  ASSERT_TRUE(dispatcher_->Pause(run, "lab1").ok());
  ASSERT_TRUE(dispatcher_->Cancel(run, "lab1").ok());
  EXPECT_EQ(stops, 1);
  EXPECT_EQ(executor_->terminated().size(), 1u);
  EXPECT_THAT(std::string(dispatcher_->Pause(run, "lab1").message()),
              HasSubstr("is cancelling and can no longer be paused"));
  // It had paused before it heard of the cancel.
  ASSERT_TRUE(runs_
                  .Append(attached->attempt_id, 1,
                          {SeriesRecord({"loss"}), StepRecord(3, {1}), CheckpointRecord(3),
                           FinishedRecord(Finished::OUTCOME_PAUSED)})
                  .ok());
  executor_->Exit(launch.key, Code(0));
  EXPECT_THAT(WaitForState(run, v1::Run::STATE_CANCELLED).end_reason(), HasSubstr("after step 3"));

  const std::string other = runs_.AddRun();
  dispatcher_->Wake();
  const executor::LaunchRequest second = executor_->WaitForLaunch(2);
  const auto paused = Attach(second);
  PauseAfter(second, *paused, 5);
  ASSERT_TRUE(dispatcher_->Cancel(other, "lab1").ok());
  EXPECT_THAT(runs_.Read(other).end_reason(), HasSubstr("cancelled by lab1 while it was paused"));
  EXPECT_EQ(runs_.Read(other).state(), v1::Run::STATE_CANCELLED);
}

TEST_F(DispatcherTest, ACheckpointThatIsGoneIsSaidAtOnce) {
  const std::string run = runs_.AddRun();
  Start();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  PauseAfter(launch, *Attach(launch), 7);
  std::filesystem::remove(files_.Checkpoints(run) / "step-7.safetensors");
  const absl::Status status = dispatcher_->Resume(run, "lab1");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("step-7.safetensors"));
  EXPECT_EQ(runs_.Read(run).state(), v1::Run::STATE_PAUSED);
}

TEST_F(DispatcherTest, ARestartGoesOnPausingAndLeavesPausedRunsAlone) {
  const std::string paused = runs_.AddRun();
  Start();
  const executor::LaunchRequest first = executor_->WaitForLaunch(1);
  PauseAfter(first, *Attach(first), 7);
  const std::string pausing = runs_.AddRun();
  dispatcher_->Wake();
  const executor::LaunchRequest second = executor_->WaitForLaunch(2);
  ASSERT_TRUE(Attach(second).ok());
  ASSERT_TRUE(dispatcher_->Pause(pausing, "lab1").ok());
  dispatcher_->Stop();
  dispatcher_.reset();
  runs_.Close();
  runs_.Open();
  Start();
  ASSERT_EQ(executor_->adopted().size(), 1u);
  EXPECT_EQ(executor_->adopted()[0], second.key);
  EXPECT_EQ(HolderOf(0), pausing);
  EXPECT_EQ(runs_.Read(paused).state(), v1::Run::STATE_PAUSED);
  int pauses = 0;
  const auto attached = Attach(
      second, [] {}, [&] { ++pauses; });
  EXPECT_EQ(pauses, 1) << "it is told again";
  PauseAfter(second, *attached, 9);
  EXPECT_EQ(executor_->launches(), 0u) << "nothing starts by itself";
  ASSERT_TRUE(dispatcher_->Resume(paused, "lab1").ok());
  const executor::LaunchRequest third = executor_->WaitForLaunch(1);
  EXPECT_EQ(third.key.run, paused);
  EXPECT_EQ(runs_.Read(paused).attempts(1).resumed_from_step(), 7);
}

TEST_F(DispatcherTest, AnAttemptThatWasToPauseAndWasNeverLaunchedIsPaused) {
  const std::string run = runs_.AddRun();
  runs_.StartAttempt(run, 0, v1::Run::STATE_PAUSING);
  Start();
  EXPECT_EQ(runs_.Read(run).state(), v1::Run::STATE_PAUSED);
}

TEST_F(DispatcherTest, ATrainerThatCannotBeStartedFailsWithTheReason) {
  Start();
  executor_->Refuse(absl::NotFoundError("no normlab-trainer"));
  const std::string run = runs_.AddRun();
  dispatcher_->Wake();
  EXPECT_THAT(WaitForState(run, v1::Run::STATE_FAILED).end_reason(),
              HasSubstr("no normlab-trainer"));
}

TEST_F(DispatcherTest, ARunWithoutRoomForItsSpoolWaitsAndIsTriedAgain) {
  Start();
  executor_->Refuse(absl::ResourceExhaustedError("no space for its spool"));
  const std::string run = runs_.AddRun();
  dispatcher_->Wake();
  for (int i = 0; i < 20'000 && runs_.Read(run).wait_reason().empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_THAT(runs_.Read(run).wait_reason(), HasSubstr("no space for its spool"));
  executor_->Refuse(absl::OkStatus());
  runs_.clock().Advance(std::chrono::seconds(3));
  EXPECT_EQ(executor_->WaitForLaunch(1).key.run, run) << "by itself, nobody wakes it";
}

TEST_F(DispatcherTest, StrangersAreTurnedAway) {
  const std::string run = runs_.AddRun();
  Start();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  const auto refused = [&](const std::string& id, int32_t attempt, const std::string& token) {
    return dispatcher_->Attach(id, attempt, token, {[] {}, [] {}}).status().code();
  };
  EXPECT_EQ(refused(run, 1, "wrong"), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(refused(run, 2, launch.token), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(refused("nobody", 1, launch.token), absl::StatusCode::kPermissionDenied);
  executor_->Exit(launch.key, Code(0));
  WaitForState(run, v1::Run::STATE_FAILED);
  EXPECT_EQ(refused(run, 1, launch.token), absl::StatusCode::kPermissionDenied)
      << "an attempt that has ended";
}

TEST_F(DispatcherTest, ARestartTakesOverWhatRunsAndKeepsItsDevice) {
  const std::string running = runs_.AddRun();
  Start();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  ASSERT_TRUE(Attach(launch).ok());
  dispatcher_->Stop();
  dispatcher_.reset();
  runs_.Close();
  runs_.Open();
  const std::string waiting = runs_.AddRun();
  Start();
  ASSERT_EQ(executor_->adopted().size(), 1u);
  EXPECT_EQ(executor_->adopted()[0], launch.key);
  EXPECT_EQ(HolderOf(0), running);
  const auto attached = Attach(launch);
  ASSERT_TRUE(attached.ok()) << "the same trainer comes back with the same token";
  executor_->Exit(launch.key, Signal(9));
  EXPECT_EQ(executor_->WaitForLaunch(1).key.run, waiting);
}

TEST_F(DispatcherTest, AnAttemptThatWasNeverLaunchedIsQueuedAgain) {
  const std::string run = runs_.AddRun();
  // The server died between the commit and the launch.
  const storage::AttemptRow attempt = runs_.StartAttempt(run, 0, v1::Run::STATE_STARTING);
  const std::filesystem::path folder = runs_.directory() / attempt.directory;
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(Spool::Create(folder / "spool", Spool::kCapacityUnit).ok());
  Start();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  EXPECT_EQ(launch.key.run, run);
  EXPECT_EQ(launch.key.attempt, attempt.number + 1);
  EXPECT_FALSE(std::filesystem::exists(folder / "spool")) << "nobody would ever read it";
}

}  // namespace
}  // namespace normlab::app
