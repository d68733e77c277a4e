// Attempts of trainers that were started ahead: the real shepherd, and shell scripts as trainers.
#include "server/executor/warm_trainers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <thread>

#include "server/base/files.h"
#include "server/base/spool.h"
#include "server/base/strings.h"
#include "server/executor/local_executor.h"
#include "tests/fakes/temp_dir.h"

namespace normlab::executor {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::steady_clock;
using testing::HasSubstr;
using testing::Not;

// Descriptor 3 is the line: a message is written, and read, as a whole.
constexpr char kWait[] =
    "[ \"$1\" = --warm ] || { echo cold $@; exit 5; }\n"
    "printf l >&3\n"
    "orders=$(dd bs=40000 count=1 <&3 2>/dev/null | tr '\\000' '\\n')\n"
    "[ -n \"$orders\" ] || exit 9\n";

class WarmTrainersTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.shepherd_path = NORMLAB_SHEPHERD;
    options_.trainer_path = root_ / "trainer";
    options_.spool_bytes = Spool::kCapacityUnit;
    options_.warm_trainers = 1;
    options_.warm_after = milliseconds(0);
  }
  void TearDown() override { executor_.reset(); }

  void TrainerDoes(const std::string& script) {
    // Under another name first: a program that is being written to cannot be started.
    const std::filesystem::path made = root_ / "trainer.made";
    std::ofstream(made) << "#!/bin/sh\n" << script << "\n";
    ASSERT_EQ(chmod(made.c_str(), 0700), 0);
    std::filesystem::rename(made, options_.trainer_path);
  }
  void MakeExecutor() {
    executor_ = std::make_unique<LocalExecutor>(
        options_, [this](const AttemptKey& key, const ExitReport& report) {
          MutexLock lock(mutex_);
          reports_[key] = report;
          ++count_;
          changed_.NotifyAll();
        });
  }
  template <typename Condition>
  static bool WaitFor(const Condition& condition) {
    const auto until = steady_clock::now() + minutes(1);
    while (!condition() && steady_clock::now() < until) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return condition();
  }
  // With one trainer that waits.
  void MakeWarmExecutor() {
    MakeExecutor();
    ASSERT_TRUE(WaitFor([this] { return executor_->WarmCount() == 1; }));
    const std::vector<ProcessIdentity> warm = Warm();
    for (const ProcessIdentity& one : warm) {
      if (ParentOf(one.pid) == getpid()) warm_shepherd_ = one;
    }
    for (const ProcessIdentity& one : warm) {
      if (ParentOf(one.pid) == warm_shepherd_.pid) warm_trainer_ = one;
    }
    ASSERT_NE(warm_shepherd_.pid, 0);
    ASSERT_NE(warm_trainer_.pid, 0);
  }
  // Processes of this test that wait for an attempt, with what scripts among them have started.
  static std::vector<ProcessIdentity> Warm() {
    std::string marker = StrCat("NORMLAB_ATTEMPT_DIR=warm:", getpid());
    marker.resize(std::strlen("NORMLAB_ATTEMPT_DIR=") + PATH_MAX, ' ');
    return FindByEnvironment(marker);
  }
  static pid_t ParentOf(pid_t pid) {
    const std::string stat = ReadFile(StrCat("/proc/", pid, "/stat")).value_or(") ? 0");
    return std::stoi(stat.substr(stat.rfind(')') + 4));
  }
  static bool IsGone(const ProcessIdentity& process) {
    const absl::StatusOr<UniqueFd> open = OpenProcess(process);
    return !open.ok() || HasEnded(*open);
  }
  LaunchRequest Request(int32_t attempt = 1) const {
    return {.key = {"01RUN", attempt},
            .token = "secret",
            .device = "gpu:0",
            .gpu_uuid = "GPU-1234",
            .threads = 2,
            .directory = root_ / StrCat("01RUN-", attempt),
            .endpoint_file = root_ / "endpoint.json"};
  }
  ExitReport WaitForExit(const AttemptKey& key) {
    MutexLock lock(mutex_);
    while (!reports_.contains(key)) {
      if (!changed_.WaitFor(mutex_, minutes(1))) {
        ADD_FAILURE() << "no exit was reported";
        return {};
      }
    }
    return reports_[key];
  }
  std::string Log(int32_t attempt = 1) const {
    return ReadFile(Request(attempt).directory / "log").value_or("(no file)");
  }

  const fakes::TempDir temporary_;
  const std::filesystem::path root_ = temporary_.path();
  LocalExecutorOptions options_;
  ProcessIdentity warm_shepherd_;
  ProcessIdentity warm_trainer_;
  Mutex mutex_;
  CondVar changed_;
  std::map<AttemptKey, ExitReport> reports_;
  int count_ = 0;
  std::unique_ptr<LocalExecutor> executor_;
};

TEST_F(WarmTrainersTest, TheOneThatWaitsBecomesTheAttempt) {
  TrainerDoes(StrCat(kWait, "echo \"$orders\" > ", (root_ / "orders").string(),
                     "; echo of the shepherd; exit 7"));
  MakeWarmExecutor();
  const ProcessIdentity shepherd = warm_shepherd_;
  const ProcessIdentity trainer = warm_trainer_;
  const absl::StatusOr<ProcessIdentity> launched = executor_->Launch(Request());
  ASSERT_TRUE(launched.ok()) << launched.status();
  EXPECT_EQ(*launched, shepherd);
  const ExitReport report = WaitForExit(Request().key);
  EXPECT_EQ(report.exit_code, 7);
  EXPECT_FALSE(report.lost);
  const std::string orders = ReadFile(root_ / "orders").value_or("");
  const std::string directory = Request().directory.string();
  EXPECT_THAT(orders, HasSubstr(StrCat("--run\n01RUN\n--attempt\n1\n--dir\n", directory,
                                       "\n--endpoint-file\n", Request().endpoint_file.string(),
                                       "\n--device\ngpu:0\n--threads\n2\n")));
  EXPECT_THAT(orders, HasSubstr("\nOMP_NUM_THREADS=2\n"));
  EXPECT_THAT(orders, HasSubstr("\nCUDA_VISIBLE_DEVICES=GPU-1234\n"));
  EXPECT_THAT(orders, HasSubstr(StrCat("\nNORMLAB_ATTEMPT_DIR=", directory, "\n")));
  EXPECT_THAT(orders, Not(HasSubstr("secret")));
  EXPECT_THAT(ReadFile(Request().directory / "shepherd.json").value_or(""),
              HasSubstr(StrCat("\"trainer_pid\": ", trainer.pid, ",")));
  EXPECT_EQ(count_, 1);
}

TEST_F(WarmTrainersTest, ItsShepherdIsThatOfTheAttemptInEveryWay) {
  const std::filesystem::path up = root_ / "up";
  TrainerDoes(StrCat(kWait, "trap 'exit 4' TERM; : > ", up.string(),
                     "; while :; do sleep 1000 & wait; done"));
  MakeWarmExecutor();
  ASSERT_TRUE(executor_->Launch(Request()).ok());
  const pid_t shepherd = warm_shepherd_.pid;
  const std::string directory = Request().directory.string();
  EXPECT_EQ(EnvironmentOf(shepherd, "NORMLAB_ATTEMPT_DIR"), directory);
  EXPECT_EQ(std::filesystem::read_symlink(StrCat("/proc/", shepherd, "/cwd")), directory);
  EXPECT_THAT(ReadFile(StrCat("/proc/", shepherd, "/cmdline")).value_or(""),
              HasSubstr(std::string("--attempt\0001\0", 12)));
  ASSERT_TRUE(WaitFor([&] { return executor_->FindShepherd(directory).has_value(); }));
  EXPECT_EQ(executor_->FindShepherd(directory), warm_shepherd_);
  // The next server takes it over.
  executor_.reset();
  EXPECT_FALSE(IsGone(warm_shepherd_));
  options_.warm_trainers = 0;
  MakeExecutor();
  ASSERT_TRUE(executor_->Adopt(Request().key, warm_shepherd_, directory).ok());
  ASSERT_TRUE(WaitFor([&] { return std::filesystem::exists(up); }));
  executor_->Terminate(Request().key, minutes(10));
  EXPECT_EQ(WaitForExit(Request().key).exit_code, 4);
}

TEST_F(WarmTrainersTest, TimeThatItWaitedIsNotTheAttempts) {
  TrainerDoes(StrCat(kWait, "exit 0"));
  MakeWarmExecutor();
  std::this_thread::sleep_for(milliseconds(300));  // what must not be counted
  const auto before = steady_clock::now();
  ASSERT_TRUE(executor_->Launch(Request()).ok());
  const ExitReport report = WaitForExit(Request().key);
  const std::chrono::duration<double> took = steady_clock::now() - before;
  ASSERT_TRUE(report.elapsed_seconds.has_value());
  EXPECT_LE(*report.elapsed_seconds, took.count());
}

TEST_F(WarmTrainersTest, AnotherOneWaitsAfterwards) {
  TrainerDoes(StrCat(kWait, "exit 7"));
  MakeWarmExecutor();
  for (int32_t attempt = 1; attempt <= 3; ++attempt) {
    ASSERT_TRUE(executor_->Launch(Request(attempt)).ok());
    EXPECT_EQ(WaitForExit(Request(attempt).key).exit_code, 7) << "5 is a cold one";
    ASSERT_TRUE(WaitFor([this] { return executor_->WarmCount() == 1; }));
  }
}

// --- what goes wrong with one that waits ---

TEST_F(WarmTrainersTest, AShepherdThatDoesNotAnswerIsKilledAndTheAttemptStartedOnce) {
  TrainerDoes(StrCat(kWait, "exit 7"));
  MakeWarmExecutor();
  options_.hand_over = milliseconds(50);
  executor_.reset();
  MakeWarmExecutor();
  const ProcessIdentity shepherd = warm_shepherd_;
  const ProcessIdentity trainer = warm_trainer_;
  kill(shepherd.pid, SIGSTOP);
  const absl::StatusOr<ProcessIdentity> launched = executor_->Launch(Request());
  ASSERT_TRUE(launched.ok()) << launched.status();
  EXPECT_NE(*launched, shepherd);
  EXPECT_EQ(WaitForExit(Request().key).exit_code, 5);
  EXPECT_THAT(Log(), HasSubstr("cold --run 01RUN"));
  EXPECT_TRUE(WaitFor([&] { return IsGone(shepherd) && IsGone(trainer); }));
  EXPECT_EQ(count_, 1);
}

TEST_F(WarmTrainersTest, OneWhoseTrainerWasKilledIsNotUsed) {
  TrainerDoes(StrCat(kWait, "exit 7"));
  MakeWarmExecutor();
  kill(warm_trainer_.pid, SIGKILL);
  EXPECT_TRUE(WaitFor([&] { return IsGone(warm_shepherd_); }));
  const absl::StatusOr<ProcessIdentity> launched = executor_->Launch(Request());
  ASSERT_TRUE(launched.ok()) << launched.status();
  EXPECT_NE(*launched, warm_shepherd_);
  // Cold, unless another one has been loaded meanwhile.
  EXPECT_THAT(WaitForExit(Request().key).exit_code.value_or(0), testing::AnyOf(5, 7));
}

TEST_F(WarmTrainersTest, AFolderThatCannotBePreparedLeavesNothingBegun) {
  TrainerDoes(StrCat(kWait, "exit 7"));
  MakeWarmExecutor();
  const ProcessIdentity shepherd = warm_shepherd_;
  // A folder is where the shepherd wants to make a file.
  std::filesystem::create_directories(Request().directory / "log");
  ASSERT_EQ(chmod(Request().directory.c_str(), 0700), 0);
  ASSERT_TRUE(executor_->Launch(Request()).ok());
  EXPECT_TRUE(WaitForExit(Request().key).lost) << "the cold one cannot make it either";
  EXPECT_TRUE(WaitFor([&] { return IsGone(shepherd); }));
  EXPECT_THAT(Log(), Not(HasSubstr("cold")));
}

TEST_F(WarmTrainersTest, AProgramThatDoesNotKnowHowToWaitIsStartedForAttemptsOnly) {
  TrainerDoes("[ \"$1\" = --warm ] && exit 2; exit 6");
  MakeExecutor();
  ASSERT_TRUE(executor_->Launch(Request()).ok());
  EXPECT_EQ(WaitForExit(Request().key).exit_code, 6);
  EXPECT_EQ(executor_->WarmCount(), 0);
}

TEST_F(WarmTrainersTest, AChangedProgramIsUsedAtOnce) {
  TrainerDoes(StrCat(kWait, "exit 7"));
  MakeWarmExecutor();
  const ProcessIdentity old = warm_shepherd_;
  TrainerDoes(StrCat(kWait, "exit 8"));
  const absl::StatusOr<ProcessIdentity> launched = executor_->Launch(Request());
  ASSERT_TRUE(launched.ok());
  EXPECT_NE(*launched, old);
  EXPECT_NE(WaitForExit(Request().key).exit_code, 7) << "the old program's";
  EXPECT_TRUE(WaitFor([&] { return IsGone(old); }));
  ASSERT_TRUE(WaitFor([this] { return executor_->WarmCount() == 1; }));
  ASSERT_TRUE(executor_->Launch(Request(2)).ok());
  EXPECT_EQ(WaitForExit(Request(2).key).exit_code, 8) << "warm again";
}

// --- the end ---

TEST_F(WarmTrainersTest, NoneIsLeftBehindTheExecutor) {
  TrainerDoes(StrCat(kWait, "exit 7"));
  MakeWarmExecutor();
  executor_.reset();
  EXPECT_TRUE(IsGone(warm_shepherd_));
  EXPECT_TRUE(IsGone(warm_trainer_));
  EXPECT_EQ(count_, 0);
}

TEST_F(WarmTrainersTest, WhatATrainerHadStartedWhileItWaitedEndsWithIt) {
  const std::filesystem::path said = root_ / "said";
  TrainerDoes(StrCat("setsid sh -c 'echo $$ > ", said.string(), "; exec sleep 1000' & ",
                     "while [ ! -s ", said.string(), " ]; do sleep 0.01; done\n", kWait));
  MakeExecutor();
  ASSERT_TRUE(WaitFor([this] { return executor_->WarmCount() == 1; }));
  const auto child = ReadIdentity(std::stoi(ReadFile(said).value_or("0")));
  ASSERT_TRUE(child.ok());
  executor_.reset();
  EXPECT_TRUE(IsGone(*child));
}

TEST_F(WarmTrainersTest, SigtermEndsAPairThatWaits) {
  TrainerDoes(StrCat(kWait, "exit 7"));
  MakeWarmExecutor();
  kill(warm_shepherd_.pid, SIGTERM);
  EXPECT_TRUE(WaitFor([&] { return IsGone(warm_shepherd_) && IsGone(warm_trainer_); }));
}

}  // namespace
}  // namespace normlab::executor
