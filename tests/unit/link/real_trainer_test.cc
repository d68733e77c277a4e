// The trainer that people get, LibTorch and all, as far as the link is concerned: what it computes
// is tested in tests/parity.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "server/trainer/link/attempt.h"
#include "tests/unit/link/attempt_fixture.h"

namespace normlab::trainer {
namespace {

using worker::v1::Finished;
using worker::v1::Record;

class RealTrainerTest : public AttemptFixture {
 protected:
  RealTrainerTest() : AttemptFixture(NORMLAB_TRAINER) {}
};

TEST_F(RealTrainerTest, ShortRunIsRecorded) {
  StartServer(20);
  Launch();
  EXPECT_EQ(WaitForExit().exit_code, kExitEnded);
  const std::vector<Record> records = AllRecords();
  ASSERT_GE(records.size(), 23U);
  EXPECT_GT(records[0].model().parameter_count(), 2 * 12 * 64 * 64);
  EXPECT_EQ(LastStep(records), 20);
  EXPECT_EQ(records.back().finished().outcome(), Finished::OUTCOME_SUCCEEDED);
  EXPECT_EQ(records.back().finished().last_step(), 20);
  for (const Record& record : records) {
    for (const double value : record.step().values()) EXPECT_TRUE(std::isfinite(value));
  }
}

// OpenMP had read the environment of a trainer for one thread.
TEST_F(RealTrainerTest, OneThatHadWaitedGivesTheSameBitsOnTheSameThreads) {
  v1::RunSpec spec = EffectiveSpec(20);
  spec.set_threads(2);
  threads_ = 2;
  // Loss and gradient norm of each step; other series are times.
  const auto steps = [&] {
    std::vector<double> of;
    const std::vector<Record> records = AllRecords();
    EXPECT_EQ(records[1].series().names(0), "loss");
    EXPECT_EQ(records[1].series().names(1), "gradient_norm");
    for (const Record& record : records) {
      if (!record.has_step()) continue;
      of.push_back(record.step().values(0));
      of.push_back(record.step().values(1));
    }
    return of;
  };
  StartServerWith(spec);
  Launch();
  EXPECT_EQ(WaitForExit().exit_code, kExitEnded);
  const std::vector<double> cold = steps();
  EXPECT_EQ(cold.size(), 40U);
  server_.reset();
  StartServerWith(spec);
  KeepWarm();
  LaunchNext();
  EXPECT_EQ(WaitForExit().exit_code, kExitEnded);
  EXPECT_EQ(steps(), cold);
}

TEST_F(RealTrainerTest, SettingThatTheEngineDoesNotKnowIsAFaultWithItsName) {
  v1::RunSpec spec = EffectiveSpec(20);
  spec.set_placement("sideways");
  StartServerWith(spec);
  Launch();
  EXPECT_EQ(WaitForExit().exit_code, kExitFault);
  const Finished finished = AllRecords().back().finished();
  EXPECT_EQ(finished.outcome(), Finished::OUTCOME_FAILED);
  EXPECT_NE(finished.reason().find("sideways"), std::string::npos) << finished.reason();
}

TEST_F(RealTrainerTest, TerminateStopsALongRun) {
  StartServer(1000000);
  Launch();
  ASSERT_TRUE(server_->WaitForRecords(10));
  executor_->Terminate(key_, std::chrono::minutes(1));
  EXPECT_EQ(WaitForExit().exit_code, kExitEnded);
  const std::vector<Record> records = AllRecords();
  EXPECT_EQ(records.back().finished().outcome(), Finished::OUTCOME_STOPPED);
  EXPECT_EQ(records.back().finished().last_step(), LastStep(records));
}

}  // namespace
}  // namespace normlab::trainer
