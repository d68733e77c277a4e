// Whole trainers, with an engine that does what its script says, under the real shepherd.
#include "server/trainer/link/attempt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/unit/link/attempt_fixture.h"

namespace normlab::trainer {
namespace {

using std::chrono::minutes;
using testing::HasSubstr;
using worker::v1::Finished;
using worker::v1::Record;

class AttemptTest : public AttemptFixture {
 protected:
  AttemptTest() : AttemptFixture(NORMLAB_FAKE_TRAINER) {}
};

TEST_F(AttemptTest, WholeRunIsRecorded) {
  StartServer(1000);
  Launch();
  EXPECT_EQ(WaitForExit().exit_code, kExitEnded);
  const std::vector<Record> records = AllRecords();
  ASSERT_EQ(records.size(), 1003U);
  EXPECT_EQ(server_->records().size(), 1003U);
  EXPECT_EQ(records[0].model().parameter_count(), 2 * 12 * 64 * 64);
  EXPECT_EQ(records[1].series().names(1), "gradient_norm");
  EXPECT_EQ(LastStep(records), 1000);
  EXPECT_EQ(records[5].step().values(0), 1.0);  // 4 / step
  EXPECT_EQ(records[1002].finished().outcome(), Finished::OUTCOME_SUCCEEDED);
  EXPECT_EQ(records[1002].finished().last_step(), 1000);
  const worker::v1::Hello hello = server_->hellos().at(0);
  EXPECT_EQ(hello.run(), "01RUN");
  EXPECT_EQ(hello.token(), "secret");
  EXPECT_EQ(hello.engine_version(), "fake");
  EXPECT_GT(hello.pid(), 0);
}

TEST_F(AttemptTest, OneThatHadWaitedIsRecordedLikeAnyOther) {
  StartServer(1000);
  KeepWarm();
  Launch();
  EXPECT_EQ(WaitForExit().exit_code, kExitEnded);
  EXPECT_EQ(AllRecords().size(), 1003U);
  EXPECT_EQ(LastStep(AllRecords()), 1000);
  EXPECT_NE(ReadFile(Directory() / "log").value_or("").find("info ended"), std::string::npos);
}

TEST_F(AttemptTest, OneThatHadWaitedIsKnownByItsEnvironmentItsFolderAndItsArguments) {
  StartServer(1000000000);
  KeepWarm();
  Launch();
  ASSERT_TRUE(server_->WaitForRecords(10));
  const std::string process = "/proc/" + std::to_string(server_->hellos().at(0).pid());
  EXPECT_EQ(EnvironmentOf(server_->hellos().at(0).pid(), "NORMLAB_ATTEMPT_DIR"),
            Directory().string());
  EXPECT_EQ(std::filesystem::read_symlink(process + "/cwd"), Directory());
  EXPECT_EQ(std::filesystem::read_symlink(process + "/fd/1"), Directory() / "log");
  EXPECT_EQ(std::filesystem::read_symlink(process + "/fd/2"), Directory() / "log");
  const std::string arguments = ReadFile(process + "/cmdline").value_or("");
  EXPECT_NE(arguments.find(std::string("\0--run\00001RUN\0--attempt\0001\0", 25)),
            std::string::npos)
      << arguments;
  EXPECT_EQ(arguments.find("--warm"), std::string::npos);
}

TEST_F(AttemptTest, DivergedRunKeepsEveryStepUpToTheBadOne) {
  setenv("NORMLAB_FAKE_ENGINE", "nan_at=42", 1);
  StartServer(100);
  Launch();
  EXPECT_EQ(WaitForExit().exit_code, kExitEnded);
  const std::vector<Record> records = AllRecords();
  EXPECT_EQ(LastStep(records), 42);
  EXPECT_TRUE(std::isnan(records[43].step().values(0)));
  EXPECT_EQ(records.back().finished().outcome(), Finished::OUTCOME_DIVERGED);
  EXPECT_EQ(records.back().finished().last_step(), 42);
  EXPECT_THAT(records.back().finished().reason(), HasSubstr("NaN at step 42"));
}

TEST_F(AttemptTest, FaultIsRecordedWithItsReason) {
  setenv("NORMLAB_FAKE_ENGINE", "throw_at=5", 1);
  StartServer(100);
  Launch();
  EXPECT_EQ(WaitForExit().exit_code, kExitFault);
  const std::vector<Record> records = AllRecords();
  EXPECT_EQ(LastStep(records), 4);
  EXPECT_EQ(records.back().finished().outcome(), Finished::OUTCOME_FAILED);
  EXPECT_EQ(records.back().finished().reason(), "the script says throw");
}

TEST_F(AttemptTest, UnresolvedSpecIsAFault) {
  v1::RunSpec spec = EffectiveSpec(100);
  spec.set_norm("auto");
  StartServerWith(spec);
  Launch();
  EXPECT_EQ(WaitForExit().exit_code, kExitFault);
  EXPECT_THAT(AllRecords().back().finished().reason(), HasSubstr("spec.norm"));
}

TEST_F(AttemptTest, CrashLosesNoStep) {
  setenv("NORMLAB_FAKE_ENGINE", "crash_at=500", 1);
  StartServer(1000);
  Launch();
  EXPECT_EQ(WaitForExit().exit_signal, SIGSEGV);
  EXPECT_EQ(LastStep(AllRecords()), 499);
}

TEST_F(AttemptTest, KillLosesNoStepThatTheServerCouldHaveSeen) {
  setenv("NORMLAB_FAKE_ENGINE", "steps_per_second=5000", 1);
  StartServer(1000000);
  Launch();
  ASSERT_TRUE(server_->WaitForRecords(1000));
  kill(TrainerPid(), SIGKILL);
  EXPECT_EQ(WaitForExit().exit_signal, SIGKILL);
  EXPECT_GE(LastStep(AllRecords()), 998);
}

TEST_F(AttemptTest, TerminateStopsAfterThePresentStep) {
  setenv("NORMLAB_FAKE_ENGINE", "hang_at=300", 1);
  StartServer(100000);
  Launch();
  ASSERT_TRUE(server_->WaitForRecords(2 + 299));
  executor_->Terminate(key_, minutes(1));
  EXPECT_EQ(WaitForExit().exit_code, kExitEnded);
  const std::vector<Record> records = AllRecords();
  EXPECT_EQ(LastStep(records), 300);
  EXPECT_EQ(records.back().finished().outcome(), Finished::OUTCOME_STOPPED);
  EXPECT_EQ(records.back().finished().last_step(), 300);
  EXPECT_EQ(server_->records().size(), records.size());
}

TEST_F(AttemptTest, StopFromTheServerDoesTheSame) {
  setenv("NORMLAB_FAKE_ENGINE", "hang_at=300", 1);
  StartServer(100000);
  server_->set_decide([](uint64_t first, size_t count) {
    return first + count > 301 ? FakeWorkerServer::Action::kStoreAckAndStop
                               : FakeWorkerServer::Action::kStoreAndAck;
  });
  Launch();
  EXPECT_EQ(WaitForExit().exit_code, kExitEnded);
  EXPECT_EQ(AllRecords().back().finished().outcome(), Finished::OUTCOME_STOPPED);
  EXPECT_EQ(LastStep(AllRecords()), 300);
}

TEST_F(AttemptTest, PauseWritesACheckpointAndTheNextAttemptGoesOnFromIt) {
  setenv("NORMLAB_FAKE_ENGINE", "hang_at=300", 1);
  StartServer(500);
  server_->set_decide([](uint64_t first, size_t count) {
    return first + count > 301 ? FakeWorkerServer::Action::kStoreAckAndPause
                               : FakeWorkerServer::Action::kStoreAndAck;
  });
  Launch();
  EXPECT_EQ(WaitForExit().exit_code, kExitEnded);
  std::vector<Record> records = AllRecords();
  EXPECT_EQ(LastStep(records), 300);
  EXPECT_EQ(records.back().finished().outcome(), Finished::OUTCOME_PAUSED);
  EXPECT_EQ(records.back().finished().last_step(), 300);
  const worker::v1::CheckpointWritten checkpoint = records[records.size() - 2].checkpoint();
  EXPECT_EQ(checkpoint.step(), 300);
  const std::filesystem::path file = server_->checkpoint_directory() / checkpoint.file();
  EXPECT_EQ(static_cast<int64_t>(std::filesystem::file_size(file)), checkpoint.bytes());

  setenv("NORMLAB_FAKE_ENGINE", "", 1);
  server_->Stop();
  StartServer(500);
  server_->set_resume_from(file);
  LaunchNext();
  EXPECT_EQ(WaitForExit().exit_code, kExitEnded);
  records = AllRecords();
  EXPECT_EQ(LastStep(records, /*first=*/301), 500);
  EXPECT_EQ(records.back().finished().outcome(), Finished::OUTCOME_SUCCEEDED);
}

TEST_F(AttemptTest, AStepLimitEndsItBehindThatStepWithACheckpoint) {
  StartServer(500);
  server_->set_step_limit(100);
  Launch();
  EXPECT_EQ(WaitForExit().exit_code, kExitEnded);
  const std::vector<Record> records = AllRecords();
  EXPECT_EQ(LastStep(records), 100);
  EXPECT_EQ(records[records.size() - 2].checkpoint().step(), 100);
  EXPECT_EQ(records.back().finished().outcome(), Finished::OUTCOME_LIMIT);
  EXPECT_EQ(records.back().finished().last_step(), 100);
  EXPECT_EQ(records.back().finished().reason(), "stopped behind step 100, its step_limit, of 500");
}

TEST_F(AttemptTest, AStepLimitOfTheLastStepLimitsNothing) {
  for (const int64_t limit : {500, 501}) {
    StartServer(500);
    server_->set_step_limit(limit);
    limit == 500 ? Launch() : LaunchNext();
    EXPECT_EQ(WaitForExit().exit_code, kExitEnded);
    EXPECT_EQ(AllRecords().back().finished().outcome(), Finished::OUTCOME_SUCCEEDED) << limit;
  }
}

TEST_F(AttemptTest, AProbeBringsAnotherSeriesInTheNextStepOnlyAndTrainingGoesOn) {
  setenv("NORMLAB_FAKE_ENGINE", "hang_at=300", 1);
  StartServer(500);
  server_->set_decide([](uint64_t first, size_t count) {
    // Records are the model, the series, and the steps up to 299.
    return first + count - 1 == 301 ? FakeWorkerServer::Action::kStoreAckAndProbe
                                    : FakeWorkerServer::Action::kStoreAndAck;
  });
  Launch();
  EXPECT_EQ(WaitForExit().exit_code, kExitEnded);
  const std::vector<Record> records = AllRecords();
  EXPECT_EQ(records.back().finished().outcome(), Finished::OUTCOME_SUCCEEDED);
  ASSERT_EQ(records.size(), 504U);
  ASSERT_TRUE(records[301].has_series());
  EXPECT_EQ(records[301].series().names(0), "log_z");
  EXPECT_EQ(records[302].step().step(), 300);
  EXPECT_EQ(records[302].step().values_size(), 4);
  EXPECT_EQ(records[302].step().series(3), 3U);
  EXPECT_EQ(records[302].step().values(3), 300);
  EXPECT_EQ(records[303].step().values_size(), 3);
}

TEST_F(AttemptTest, APauseThatComesWithTheLastStepIsASuccess) {
  setenv("NORMLAB_FAKE_ENGINE", "hang_at=300", 1);
  StartServer(300);
  server_->set_decide([](uint64_t first, size_t count) {
    return first + count > 301 ? FakeWorkerServer::Action::kStoreAckAndPause
                               : FakeWorkerServer::Action::kStoreAndAck;
  });
  Launch();
  EXPECT_EQ(WaitForExit().exit_code, kExitEnded);
  EXPECT_EQ(AllRecords().back().finished().outcome(), Finished::OUTCOME_SUCCEEDED);
}

TEST_F(AttemptTest, ATrainerThatHasLostItsServerForLongLeavesACheckpoint) {
  setenv("NORMLAB_FAKE_ENGINE", "hang_at=300", 1);
  setenv("NORMLAB_REATTACH_GRACE", "0.3", 1);
  StartServer(500);
  Launch();
  unsetenv("NORMLAB_REATTACH_GRACE");
  ASSERT_TRUE(server_->WaitForRecords(2 + 299));
  server_->Stop();
  EXPECT_EQ(WaitForExit().exit_code, kExitServerLost);
  const std::vector<Record> records = AllRecords();
  EXPECT_EQ(records[records.size() - 2].checkpoint().step(), 300);
  EXPECT_EQ(records.back().finished().outcome(), Finished::OUTCOME_ORPHANED);
  EXPECT_THAT(records.back().finished().reason(), HasSubstr("no server for"));
  EXPECT_THAT(records.back().finished().reason(), HasSubstr("checkpoint of step 300"));
}

TEST_F(AttemptTest, AMissingCheckpointIsReportedAsUnreadableWithItsFile) {
  StartServer(100);
  server_->set_resume_from("/nowhere/step-5.checkpoint");
  Launch();
  EXPECT_EQ(WaitForExit().exit_code, 0);
  const Finished finished = AllRecords().back().finished();
  EXPECT_EQ(finished.outcome(), Finished::OUTCOME_UNREADABLE);
  EXPECT_THAT(finished.reason(), HasSubstr("/nowhere/step-5.checkpoint"));
}

TEST_F(AttemptTest, EngineThatIgnoresTheRequestIsKilledAndItsStepsAreKept) {
  setenv("NORMLAB_FAKE_ENGINE", "hang_at=300,ignore_stop=1", 1);
  StartServer(100000);
  Launch();
  ASSERT_TRUE(server_->WaitForRecords(2 + 299));
  executor_->Terminate(key_, std::chrono::milliseconds(20));
  EXPECT_EQ(WaitForExit().exit_signal, SIGKILL);
  EXPECT_EQ(LastStep(AllRecords()), 299);
}

TEST_F(AttemptTest, TrainingGoesOnWhileTheServerRestarts) {
  setenv("NORMLAB_FAKE_ENGINE", "steps_per_second=5000", 1);
  StartServer(3000);
  Launch();
  for (size_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(server_->WaitForRecords(i * 500));
    server_->Stop();
    server_->Start();
  }
  EXPECT_EQ(WaitForExit().exit_code, kExitEnded);
  EXPECT_EQ(LastStep(AllRecords()), 3000);
  EXPECT_EQ(server_->duplicates(), 0U);
  EXPECT_GE(server_->hellos().size(), 4U);
}

TEST_F(AttemptTest, TrainerEndsAlsoWhenTheServerIsGone) {
  setenv("NORMLAB_FAKE_ENGINE", "hang_at=300", 1);
  StartServer(100000);
  Launch();
  ASSERT_TRUE(server_->WaitForRecords(2 + 299));
  server_->Stop();
  executor_->Terminate(key_, minutes(1));
  EXPECT_EQ(WaitForExit().exit_code, kExitEnded);  // after the 5 s of waiting for the server
  EXPECT_EQ(AllRecords().back().finished().outcome(), Finished::OUTCOME_STOPPED);
  EXPECT_LT(server_->records().size(), AllRecords().size());
}

TEST_F(AttemptTest, SeedChoosesTheScript) {
  setenv("NORMLAB_FAKE_ENGINE", "nan_at=42", 1);
  setenv("NORMLAB_FAKE_ENGINE_7", "nan_at=21", 1);
  StartServer(100);
  Launch();
  EXPECT_EQ(WaitForExit().exit_code, kExitEnded);
  EXPECT_EQ(LastStep(AllRecords()), 21);
  unsetenv("NORMLAB_FAKE_ENGINE_7");
}

TEST(ParseArgumentsTest, AllAreNeededAndChecked) {
  std::vector<const char*> argv = {
      "normlab-trainer", "--run", "01RUN",    "--attempt", "2",         "--dir", "/d",
      "--endpoint-file", "/e",    "--device", "cpu:0",     "--threads", "4"};
  const auto parse = [&] { return ParseArguments(static_cast<int>(argv.size()), argv.data()); };
  const absl::StatusOr<AttemptArguments> arguments = parse();
  ASSERT_TRUE(arguments.ok());
  EXPECT_EQ(arguments->run, "01RUN");
  EXPECT_EQ(arguments->attempt, 2);
  EXPECT_EQ(arguments->directory, "/d");
  EXPECT_EQ(arguments->endpoint_file, "/e");
  EXPECT_EQ(arguments->device, "cpu:0");
  EXPECT_EQ(arguments->threads, 4);
  argv[12] = "0";
  EXPECT_THAT(parse().status().ToString(), HasSubstr("--threads"));
  argv.pop_back();
  EXPECT_THAT(parse().status().ToString(), HasSubstr("--threads needs a value"));
  argv[1] = "--ran";
  EXPECT_THAT(parse().status().ToString(), HasSubstr("what is --ran?"));
}

}  // namespace
}  // namespace normlab::trainer
