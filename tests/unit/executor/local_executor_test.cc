// With real processes: the real shepherd, and shell scripts as trainers.
#include "server/executor/local_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <optional>

#include "server/base/files.h"
#include "server/base/spool.h"
#include "tests/fakes/temp_dir.h"

namespace normlab::executor {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using testing::HasSubstr;

// Where exits are reported to, and waited for.
class Reports {
 public:
  Executor::ExitCallback Callback() {
    return [this](const AttemptKey& key, const ExitReport& report) {
      MutexLock lock(mutex_);
      ++count_;
      reports_[key] = report;
      changed_.NotifyAll();
    };
  }
  ExitReport Wait(const AttemptKey& key) {
    MutexLock lock(mutex_);
    while (!reports_.contains(key)) {
      if (!changed_.WaitFor(mutex_, minutes(1))) {
        ADD_FAILURE() << "no exit was reported";
        return {};
      }
    }
    return reports_[key];
  }
  int count() {
    MutexLock lock(mutex_);
    return count_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<AttemptKey, ExitReport> reports_;
  int count_ = 0;
};

class LocalExecutorTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.shepherd_path = NORMLAB_SHEPHERD;
    options_.trainer_path = root_ / "trainer";
    options_.spool_bytes = Spool::kCapacityUnit;
    said_ = root_ / "said";
    ASSERT_EQ(mkfifo(said_.c_str(), 0600), 0);
  }

  // What the next trainers do. SAID is a pipe to the test.
  void TrainerDoes(const std::string& script) {
    std::ofstream file(options_.trainer_path);
    file << "#!/bin/sh\nSAID=" << said_.string() << "\n" << script << "\n";
    file.close();
    ASSERT_EQ(chmod(options_.trainer_path.c_str(), 0700), 0);
  }
  // Waits until somebody says a line.
  std::string Said() {
    std::ifstream pipe(said_);
    std::string line;
    std::getline(pipe, line);
    return line;
  }
  LaunchRequest Request(const std::string& run = "01RUN") {
    return {.key = {run, 1},
            .token = "secret",
            .device = "cpu:0",
            .gpu_uuid = "",
            .threads = 2,
            .directory = root_ / run / "1",
            .endpoint_file = root_ / "endpoint.json"};
  }
  std::unique_ptr<LocalExecutor> MakeExecutor() {
    return std::make_unique<LocalExecutor>(options_, reports_.Callback());
  }
  ExitReport Run(const std::string& script) {
    TrainerDoes(script);
    auto executor = MakeExecutor();
    const auto shepherd = executor->Launch(Request());
    EXPECT_TRUE(shepherd.ok()) << shepherd.status();
    return reports_.Wait(Request().key);
  }
  std::string Content(const std::string& name) {
    return ReadFile(Request().directory / name).value_or("(no file)");
  }

  const fakes::TempDir temporary_;
  const std::filesystem::path root_ = temporary_.path();
  std::filesystem::path said_;
  LocalExecutorOptions options_;
  Reports reports_;
};

// A process that the test only looks at.
UniqueFd Open(const std::string& pid) {
  absl::StatusOr<ProcessIdentity> identity = ReadIdentity(std::stoi(pid));
  EXPECT_TRUE(identity.ok());
  absl::StatusOr<UniqueFd> process = OpenProcess(*identity);
  EXPECT_TRUE(process.ok());
  return *std::move(process);
}

void WaitForEnd(const UniqueFd& process) {
  pollfd entry = {.fd = process.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&entry, 1, 60000), 1);
}

TEST_F(LocalExecutorTest, ExitCodeIsReported) {
  const ExitReport zero = Run("exit 0");
  EXPECT_EQ(zero.exit_code, 0);
  EXPECT_EQ(zero.exit_signal, std::nullopt);
  EXPECT_FALSE(zero.lost);
  EXPECT_EQ(zero.detail, "");
  EXPECT_GT(zero.max_rss_bytes, 100000);
  EXPECT_GE(zero.cpu_seconds, 0);
}

TEST_F(LocalExecutorTest, NonZeroExitCodeIsReported) { EXPECT_EQ(Run("exit 3").exit_code, 3); }

TEST_F(LocalExecutorTest, KilledTrainerIsReportedWithItsSignal) {
  const ExitReport report = Run("kill -KILL $$");
  EXPECT_EQ(report.exit_signal, SIGKILL);
  EXPECT_EQ(report.exit_code, std::nullopt);
  EXPECT_EQ(report.detail, "");  // not by us
}

TEST_F(LocalExecutorTest, CrashedTrainerIsReportedWithItsSignal) {
  EXPECT_EQ(Run("kill -SEGV $$").exit_signal, SIGSEGV);
}

TEST_F(LocalExecutorTest, ProcessorTimeOfAllProcessesIsCounted) {
  const ExitReport report =
      Run("sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done' & wait; exit 0");
  EXPECT_GT(report.cpu_seconds, 0.01);
}

TEST_F(LocalExecutorTest, TrainerFindsItsFolderArgumentsAndEnvironment) {
  setenv("NORMLAB_TOKEN", "of the owner", 1);
  setenv("OMP_NUM_THREADS", "64", 1);
  LaunchRequest request = Request();
  request.gpu_uuid = "GPU-1234";
  TrainerDoes("echo $@; pwd; nice; env");
  auto executor = MakeExecutor();
  ASSERT_TRUE(executor->Launch(request).ok());
  EXPECT_EQ(reports_.Wait(request.key).exit_code, 0);
  const std::string log = Content("log");
  const std::string directory = request.directory.string();
  EXPECT_THAT(log, HasSubstr("--run 01RUN --attempt 1 --dir " + directory + " --endpoint-file " +
                             request.endpoint_file.string() + " --device cpu:0 --threads 2\n" +
                             directory + "\n"));
  EXPECT_THAT(log, HasSubstr("\nOMP_NUM_THREADS=2\n"));
  EXPECT_THAT(log, HasSubstr("\nMKL_NUM_THREADS=2\n"));
  EXPECT_THAT(log, HasSubstr("\nOMP_WAIT_POLICY=PASSIVE\n"));
  EXPECT_THAT(log, HasSubstr("\nCUDA_VISIBLE_DEVICES=GPU-1234\n"));
  EXPECT_THAT(log, HasSubstr("\nPATH="));
  EXPECT_THAT(log, testing::Not(HasSubstr("of the owner")));
  EXPECT_EQ(Content("token"), "secret");
  EXPECT_THAT(Content("shepherd.json"), HasSubstr("\"boot_id\": \"" + BootId()));
  struct stat info;
  ASSERT_EQ(stat((request.directory / "token").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  ASSERT_EQ(stat(directory.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  EXPECT_TRUE(SpoolReader::Open(request.directory / "spool").ok());
}

TEST_F(LocalExecutorTest, TrainerIsNicerThanTheServer) {
  Run("nice");
  EXPECT_EQ(Content("log"), std::to_string(getpriority(PRIO_PROCESS, 0) + 5) + "\n");
}

TEST_F(LocalExecutorTest, TerminateLetsTheTrainerEndByItself) {
  TrainerDoes("trap 'exit 7' TERM; echo up > $SAID; while :; do sleep 1000 & wait; done");
  auto executor = MakeExecutor();
  ASSERT_TRUE(executor->Launch(Request()).ok());
  EXPECT_EQ(Said(), "up");
  executor->Terminate(Request().key, minutes(10));
  const ExitReport report = reports_.Wait(Request().key);
  EXPECT_EQ(report.exit_code, 7);
  EXPECT_EQ(report.detail, "");
}

TEST_F(LocalExecutorTest, WhatIgnoresTheRequestOrLeftTheSessionIsKilledAfterTheGrace) {
  TrainerDoes(
      "trap '' TERM; setsid sh -c 'sleep 1000 & echo $$ $! > $0; wait' $SAID & "
      "while :; do sleep 1000; done");
  auto executor = MakeExecutor();
  ASSERT_TRUE(executor->Launch(Request()).ok());
  const std::string said = Said();
  const UniqueFd child = Open(said);
  const UniqueFd grandchild = Open(said.substr(said.find(' ')));
  executor->Terminate(Request().key, milliseconds(50));
  const ExitReport report = reports_.Wait(Request().key);
  EXPECT_EQ(report.exit_signal, SIGKILL);
  EXPECT_THAT(report.detail, HasSubstr("did not end when it was asked to"));
  EXPECT_TRUE(HasEnded(child));
  EXPECT_TRUE(HasEnded(grandchild));
}

TEST_F(LocalExecutorTest, ShorterGraceOvertakesALongerOne) {
  TrainerDoes("trap '' TERM; echo up > $SAID; while :; do sleep 1000; done");
  auto executor = MakeExecutor();
  ASSERT_TRUE(executor->Launch(Request()).ok());
  Said();
  executor->Terminate(Request().key, minutes(10));
  executor->Terminate(Request().key, milliseconds(0));
  EXPECT_EQ(reports_.Wait(Request().key).exit_signal, SIGKILL);
}

TEST_F(LocalExecutorTest, SuspendedTrainerStillHearsTheRequest) {
  TrainerDoes("trap 'exit 7' TERM; echo up > $SAID; kill -STOP $$; exit 8");
  auto executor = MakeExecutor();
  ASSERT_TRUE(executor->Launch(Request()).ok());
  Said();
  executor->Terminate(Request().key, minutes(10));
  EXPECT_EQ(reports_.Wait(Request().key).exit_code, 7);
}

TEST_F(LocalExecutorTest, ExitIsReportedOnceNothingIsLeft) {
  TrainerDoes(
      "setsid sh -c 'trap \"\" TERM HUP; echo $$ > $0; sleep 1000' $SAID & "
      "read line < $SAID.go; exit 4");
  const std::string go = said_.string() + ".go";
  ASSERT_EQ(mkfifo(go.c_str(), 0600), 0);
  auto executor = MakeExecutor();
  ASSERT_TRUE(executor->Launch(Request()).ok());
  const UniqueFd left_behind = Open(Said());
  EXPECT_FALSE(HasEnded(left_behind));
  std::ofstream(go) << "go\n";
  EXPECT_EQ(reports_.Wait(Request().key).exit_code, 4);
  EXPECT_TRUE(HasEnded(left_behind));
}

TEST_F(LocalExecutorTest, LivingAttemptIsAdoptedByTheNextExecutor) {
  TrainerDoes("trap 'exit 7' TERM; echo up > $SAID; while :; do sleep 1000 & wait; done");
  auto first = MakeExecutor();
  const auto shepherd = first->Launch(Request());
  ASSERT_TRUE(shepherd.ok());
  Said();
  first.reset();
  EXPECT_EQ(reports_.count(), 0);
  auto second = MakeExecutor();
  ASSERT_TRUE(second->Adopt(Request().key, *shepherd, Request().directory).ok());
  EXPECT_EQ(second->Adopt(Request().key, *shepherd, Request().directory).code(),
            absl::StatusCode::kAlreadyExists);
  second->Terminate(Request().key, minutes(10));
  EXPECT_EQ(reports_.Wait(Request().key).exit_code, 7);
  EXPECT_EQ(reports_.count(), 1);
}

TEST_F(LocalExecutorTest, AttemptThatEndedMeanwhileIsReportedFromItsFile) {
  TrainerDoes("echo up > $SAID; exit 5");
  auto first = MakeExecutor();
  const auto shepherd = first->Launch(Request());
  ASSERT_TRUE(shepherd.ok());
  const absl::StatusOr<UniqueFd> process = OpenProcess(*shepherd);
  ASSERT_TRUE(process.ok());
  first.reset();
  Said();
  WaitForEnd(*process);
  auto second = MakeExecutor();
  ASSERT_TRUE(second->Adopt(Request().key, *shepherd, Request().directory).ok());
  EXPECT_EQ(reports_.Wait(Request().key).exit_code, 5);
}

TEST_F(LocalExecutorTest, KilledShepherdTakesEverythingWithItAndIsReportedAsLost) {
  TrainerDoes(
      "trap '' TERM; setsid sh -c 'echo $PPID $$ > $0; sleep 1000' $SAID & "
      "while :; do sleep 1000; done");
  auto executor = MakeExecutor();
  const auto shepherd = executor->Launch(Request());
  ASSERT_TRUE(shepherd.ok());
  const std::string said = Said();
  const UniqueFd trainer = Open(said);
  const UniqueFd grandchild = Open(said.substr(said.find(' ')));
  kill(shepherd->pid, SIGKILL);
  const ExitReport report = reports_.Wait(Request().key);
  EXPECT_TRUE(report.lost);
  EXPECT_EQ(report.exit_code, std::nullopt);
  EXPECT_THAT(report.detail, HasSubstr("without a report"));
  WaitForEnd(trainer);
  WaitForEnd(grandchild);
}

TEST_F(LocalExecutorTest, ProcessWithAReusedNumberIsNeverSignalled) {
  const absl::StatusOr<pid_t> bystander = Spawn({.argv = {"/bin/sleep", "1000"}});
  ASSERT_TRUE(bystander.ok());
  ProcessIdentity identity = *ReadIdentity(*bystander);
  const UniqueFd process = *OpenProcess(identity);
  --identity.start_ticks;
  auto executor = MakeExecutor();
  ASSERT_TRUE(executor->Adopt(Request().key, identity, Request().directory).ok());
  executor->Terminate(Request().key, milliseconds(0));
  EXPECT_TRUE(reports_.Wait(Request().key).lost);
  executor->Terminate(Request().key, milliseconds(0));
  EXPECT_FALSE(HasEnded(process));
  kill(*bystander, SIGKILL);
  waitpid(*bystander, nullptr, 0);
}

// --- a server that died between launching a shepherd and noting it ---

TEST_F(LocalExecutorTest, WhatWasNeverLaunchedHasNoShepherd) {
  EXPECT_FALSE(MakeExecutor()->FindShepherd(Request().directory));
  ASSERT_TRUE(MakePrivateDirectory(Request().directory).ok());
  std::ofstream(Request().directory / "alive");  // it died before it started anything
  EXPECT_FALSE(MakeExecutor()->FindShepherd(Request().directory));
}

TEST_F(LocalExecutorTest, AShepherdThatNobodyNotedIsFound) {
  TrainerDoes("echo ready > $SAID; read line < $SAID");
  auto executor = MakeExecutor();
  const auto launched = executor->Launch(Request());
  ASSERT_TRUE(launched.ok());
  EXPECT_EQ(Said(), "ready");
  executor = MakeExecutor();
  const auto found = executor->FindShepherd(Request().directory);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(*found, *launched);
  ASSERT_TRUE(executor->Adopt(Request().key, *found, Request().directory).ok());
  std::ofstream(said_) << "end" << std::endl;
  EXPECT_EQ(reports_.Wait(Request().key).exit_code, 0);
  EXPECT_TRUE(executor->FindShepherd(Request().directory).has_value()) << "who it was";
}

TEST_F(LocalExecutorTest, AShepherdThatIsSlowToSayWhoItIsIsWaitedFor) {
  TrainerDoes("true");
  options_.shepherd_path = root_ / "slow";
  // It keeps this pipe open: opened anew for the second line, it could still find who said the
  // first, just before that one closes it.
  const std::filesystem::path told = root_ / "told";
  ASSERT_EQ(mkfifo(told.c_str(), 0600), 0);
  std::ofstream(options_.shepherd_path)
      << "#!/bin/sh\necho ready > " << said_.string() << "\nexec <> " << told.string()
      << "\nread line\necho '{\"pid\": 77, \"start_ticks\": 5, \"boot_id\": \"b\"}' > "
         "tmp; mv tmp shepherd.json\n"
      << "read line\n";
  chmod(options_.shepherd_path.c_str(), 0700);
  auto executor = MakeExecutor();
  ASSERT_TRUE(executor->Launch(Request()).ok());
  EXPECT_EQ(Said(), "ready");
  options_.introduction = minutes(1);
  executor = MakeExecutor();
  auto found =
      std::async(std::launch::async, [&] { return executor->FindShepherd(Request().directory); });
  std::ofstream(told) << "speak" << std::endl;
  EXPECT_EQ(found.get().value_or(ProcessIdentity{}).pid, 77);
  std::ofstream(told) << "end" << std::endl;
}

TEST_F(LocalExecutorTest, AShepherdThatNeverSaysWhoItIsIsKilled) {
  TrainerDoes("true");
  options_.shepherd_path = root_ / "mute";
  std::ofstream(options_.shepherd_path)
      << "#!/bin/sh\necho ready > " << said_.string() << "\nexec sleep 1000\n";
  chmod(options_.shepherd_path.c_str(), 0700);
  auto executor = MakeExecutor();
  const auto launched = executor->Launch(Request());
  ASSERT_TRUE(launched.ok());
  EXPECT_EQ(Said(), "ready");
  options_.introduction = milliseconds(50);
  executor = MakeExecutor();
  EXPECT_FALSE(executor->FindShepherd(Request().directory));
  // Only its remains are left: it is this process's child.
  siginfo_t info = {};
  EXPECT_EQ(waitid(P_PID, launched->pid, &info, WEXITED), 0);
  EXPECT_EQ(info.si_status, SIGKILL);
}

TEST_F(LocalExecutorTest, ALogThatGrowsIsKeptShort) {
  options_.log_bytes = 100'000;
  // A second passes before the shepherd looks.
  Run("i=0; while [ $i -lt 3000 ]; do echo line $i of the log, and some more "
      "to fill it; "
      "i=$((i+1)); done; while [ ! -e log.1 ]; do sleep 0.01; done; echo the "
      "end");
  EXPECT_THAT(Content("log"), HasSubstr("the last of it is in log.1"));
  EXPECT_THAT(Content("log"), HasSubstr("the end"));
  EXPECT_LT(Content("log").size(), 100'000u);
  EXPECT_GE(Content("log.1").size(), 100'000u);
  EXPECT_LT(Content("log.1").size(), 200'000u);
  EXPECT_THAT(Content("log.1"), HasSubstr(" of the log, and some more"));
}

TEST_F(LocalExecutorTest, TheReportSaysHowLongItRan) {
  const ExitReport report = Run("sleep 0.2");
  ASSERT_TRUE(report.elapsed_seconds.has_value());
  EXPECT_GE(*report.elapsed_seconds, 0.2);
}

TEST_F(LocalExecutorTest, ManyAttemptsAreReportedEachOnce) {
  TrainerDoes("exit $4");  // its attempt number
  auto executor = MakeExecutor();
  for (int32_t i = 1; i <= 20; ++i) {
    LaunchRequest request = Request();
    request.key.attempt = i;
    request.directory = root_ / std::to_string(i);
    ASSERT_TRUE(executor->Launch(request).ok());
  }
  for (int32_t i = 1; i <= 20; ++i) EXPECT_EQ(reports_.Wait({"01RUN", i}).exit_code, i);
  EXPECT_EQ(reports_.count(), 20);
}

TEST_F(LocalExecutorTest, AttemptStartsOnlyOnce) {
  TrainerDoes("exit 0");
  auto executor = MakeExecutor();
  ASSERT_TRUE(executor->Launch(Request()).ok());
  EXPECT_EQ(executor->Launch(Request()).status().code(), absl::StatusCode::kAlreadyExists);
  reports_.Wait(Request().key);
  EXPECT_EQ(executor->Launch(Request()).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(LocalExecutorTest, WithoutRoomForTheSpoolNothingStarts) {
  TrainerDoes("exit 0");
  auto executor = MakeExecutor();
  struct rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  const struct rlimit tiny = {1 << 12, old.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &tiny);
  const absl::Status status = executor->Launch(Request()).status();
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_FALSE(std::filesystem::exists(Request().directory / "spool"));
  EXPECT_TRUE(executor->Launch(Request()).ok());
  reports_.Wait(Request().key);
}

// A disk that fills up while a run starts must not cost the run its ending.
TEST_F(LocalExecutorTest, TheSpaceOfTheEndingIsTakenBeforeThereIsAShepherd) {
  const std::filesystem::path shepherd = root_ / "shepherd";
  std::ofstream(shepherd) << "#!/bin/sh\nstat -c '%s in %b' exit.json.tmp >found\n";
  ASSERT_EQ(chmod(shepherd.c_str(), 0700), 0);
  TrainerDoes("exit 0");
  options_.shepherd_path = shepherd;
  auto executor = MakeExecutor();
  ASSERT_TRUE(executor->Launch(Request()).ok());
  reports_.Wait(Request().key);
  EXPECT_EQ(*ReadFile(Request().directory / "found"), "4096 in 8\n");
}

TEST_F(LocalExecutorTest, WithoutRoomForTheEndingNothingStarts) {
  TrainerDoes("exit 0");
  std::filesystem::create_directories(Request().directory / "exit.json.tmp");
  ASSERT_EQ(chmod(Request().directory.c_str(), 0700), 0);
  auto executor = MakeExecutor();
  EXPECT_THAT(executor->Launch(Request()).status().ToString(),
              HasSubstr("cannot reserve exit.json"));
  EXPECT_FALSE(std::filesystem::exists(Request().directory / "spool"));
  std::filesystem::remove(Request().directory / "exit.json.tmp");
  EXPECT_TRUE(executor->Launch(Request()).ok());
  EXPECT_EQ(reports_.Wait(Request().key).exit_code, 0);
}

TEST_F(LocalExecutorTest, MissingTrainerIsSaidBeforeAnythingIsMade) {
  const absl::Status status = MakeExecutor()->Launch(Request()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.ToString(), HasSubstr(options_.trainer_path.string()));
  EXPECT_FALSE(std::filesystem::exists(Request().directory));
}

TEST_F(LocalExecutorTest, DamagedReportIsLost) {
  std::filesystem::create_directories(Request().directory);
  auto executor = MakeExecutor();
  for (const char* text :
       {"", "{", "[1]", "{\"exit_code\": \"0\"}", "{\"exit_code\": 0, \"exit_signal\": 9}"}) {
    std::ofstream(Request().directory / "exit.json") << text;
    AttemptKey key = {text, 1};
    ASSERT_TRUE(executor->Adopt(key, {1, 0, ""}, Request().directory).ok());
    EXPECT_TRUE(reports_.Wait(key).lost) << text;
  }
}

}  // namespace
}  // namespace normlab::executor
