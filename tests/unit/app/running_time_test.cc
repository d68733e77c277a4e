// The wall clock is set forward or back while a run trains: what is measured does not notice.
#include <signal.h>

#include <cmath>

#include "gmock/gmock.h"
#include "google/protobuf/util/time_util.h"
#include "server/app/next_attempt.h"
#include "server/app/users.h"
#include "server/base/subprocess.h"
#include "tests/unit/app/dispatcher_fixture.h"

namespace normlab::app {
namespace {

using executor::ExitReport;
using executor::LaunchRequest;
using google::protobuf::util::TimeUtil;
using std::chrono::hours;

class RunningTimeTest : public DispatcherTest, public ::testing::WithParamInterface<hours> {
 protected:
  // How long it took by the times that people are shown, which shows that the clock did jump.
  static double WallSeconds(const v1::Attempt& attempt) {
    return static_cast<double>(
               TimeUtil::DurationToMilliseconds(attempt.end_time() - attempt.start_time())) /
           1000;
  }
  double jump_seconds() const { return std::chrono::duration<double>(GetParam()).count(); }
};

TEST_P(RunningTimeTest, IsWhatTheShepherdMeasured) {
  const std::string run = runs_.AddRun();
  Start();
  const LaunchRequest launch = executor_->WaitForLaunch(1);
  const auto attached = Attach(launch);
  ASSERT_TRUE(attached.ok());
  ASSERT_TRUE(runs_
                  .Append(attached->attempt_id, 1,
                          {fakes::SeriesRecord({"loss"}), fakes::StepRecord(1, {2})})
                  .ok());
  runs_.clock().Advance(std::chrono::seconds(90));
  runs_.clock().JumpWall(GetParam());
  ASSERT_TRUE(runs_.Append(attached->attempt_id, 3, {fakes::StepRecord(2, {1})}).ok());
  ExitReport exit = Code(1);
  exit.elapsed_seconds = 90;
  executor_->Exit(launch.key, exit);
  const v1::Run ended = WaitForState(run, v1::Run::STATE_FAILED);
  EXPECT_EQ(ended.run_seconds(), 90);
  EXPECT_DOUBLE_EQ(WallSeconds(ended.attempts(0)), 90 + jump_seconds());
}

TEST_P(RunningTimeTest, OfALostAttemptIsThatOfItsLastRecords) {
  const std::string run = runs_.AddRun();
  storage::AttemptRow attempt = runs_.StartAttempt(run);
  // Its shepherd is as old as the machine's boot: it had waited, warm.
  attempt.shepherd_pid = getpid();
  attempt.shepherd_start_ticks = 1;
  attempt.shepherd_boot_id = BootId();
  ASSERT_TRUE(runs_.store()
                  .writer()
                  .Write([&](storage::WriteContext& context) {
                    return storage::SetShepherd(context, attempt);
                  })
                  .ok());
  const double before = BootSeconds() - attempt.began;
  runs_.clock().JumpWall(GetParam());
  ASSERT_TRUE(
      runs_.Append(attempt.id, 1, {fakes::SeriesRecord({"loss"}), fakes::StepRecord(1, {2})}).ok());
  const double after = BootSeconds() - attempt.began;
  runs_.clock().JumpWall(GetParam());
  ASSERT_TRUE(runs_.store()
                  .writer()
                  .Write([&](storage::WriteContext& context) {
                    return storage::EndAttempt(context, attempt.id, {.interrupted = true});
                  })
                  .ok());
  EXPECT_GE(runs_.Read(run).run_seconds(), before);
  EXPECT_LE(runs_.Read(run).run_seconds(), after);
  EXPECT_GE(std::abs(WallSeconds(runs_.Read(run).attempts(0))), 3600);
}

TEST_P(RunningTimeTest, OfAnAttemptThatIsTakenOverIsNotTheAgeOfItsShepherd) {
  v1::RunSpec spec;
  spec.set_time_limit(BootSeconds() / 2);
  const std::string run = AddRunWith(spec);
  storage::AttemptRow attempt = runs_.StartAttempt(run);
  attempt.shepherd_pid = getpid();
  attempt.shepherd_start_ticks = 1;  // it had waited, warm, since the boot
  attempt.shepherd_boot_id = BootId();
  ASSERT_TRUE(runs_.store()
                  .writer()
                  .Write([&](storage::WriteContext& context) {
                    return storage::SetShepherd(context, attempt);
                  })
                  .ok());
  runs_.clock().JumpWall(GetParam());
  Start(2);
  const std::string other = runs_.AddRun();
  dispatcher_->Wake();
  EXPECT_EQ(executor_->WaitForLaunch(1).key.run, other);  // so it has been through a round
  EXPECT_EQ(runs_.Read(run).state(), v1::Run::STATE_RUNNING);
  runs_.clock().Advance(std::chrono::seconds(static_cast<int64_t>(spec.time_limit()) + 1));
  dispatcher_->Wake();
  WaitForState(run, v1::Run::STATE_PAUSING);
}

TEST_P(RunningTimeTest, APauseAfterAnInterruptionIsNeitherCutShortNorDrawnOut) {
  const std::string run = runs_.AddRun();
  Start();
  executor_->Exit(executor_->WaitForLaunch(1).key, Signal(SIGKILL));
  WaitForState(run, v1::Run::STATE_QUEUED);
  runs_.clock().JumpWall(GetParam());
  // Another run is planned meanwhile: the dispatcher has looked, and has left the first one alone.
  const std::string other = runs_.AddRun();
  dispatcher_->Wake();
  const LaunchRequest second = executor_->WaitForLaunch(2);
  EXPECT_EQ(second.key.run, other);
  executor_->Exit(second.key, Code(1));
  WaitForState(other, v1::Run::STATE_FAILED);
  runs_.clock().Advance(PauseAfterInterruption(1));
  dispatcher_->Wake();
  EXPECT_EQ(executor_->WaitForLaunch(3).key.run, run);
}

TEST_P(RunningTimeTest, ALoginCodeLivesForAMinute) {
  Users users(runs_.store(), runs_.clock());
  ASSERT_TRUE(users.Load(runs_.directory() / "owner-token").ok());
  const Principal owner = users.Authenticate(users.owner_token()).value();
  const std::string early = users.MakeLoginCode(owner).value();
  const std::string late = users.MakeLoginCode(owner).value();
  runs_.clock().JumpWall(GetParam());
  runs_.clock().Advance(std::chrono::seconds(59));
  EXPECT_TRUE(users.ExchangeLoginCode(early, "").ok());
  runs_.clock().Advance(std::chrono::seconds(1));
  EXPECT_TRUE(absl::IsUnauthenticated(users.ExchangeLoginCode(late, "").status()));
}

TEST_P(RunningTimeTest, RunsStayInTheOrderOfTheirSubmission) {
  UlidGenerator ids;
  const std::string before = ids.Next(runs_.clock().WallMicros());
  runs_.clock().JumpWall(GetParam());
  const std::string after = ids.Next(runs_.clock().WallMicros());
  EXPECT_LT(before, after);
}

INSTANTIATE_TEST_SUITE_P(WhenTheClockJumps, RunningTimeTest, ::testing::Values(hours(1), hours(-1)),
                         [](const auto& jump) {
                           return jump.param > hours(0) ? "Forward" : "Back";
                         });

}  // namespace
}  // namespace normlab::app
