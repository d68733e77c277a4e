#include "server/app/early_stopper.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/mutex.h"
#include "server/storage/experiments.h"
#include "server/storage/run_deletion.h"
#include "tests/fakes/stored_runs.h"
#include "tests/non_finite.h"

namespace normlab::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Runs of one sweep in a real store; the test says what points come in.
class EarlyStopperTest : public ::testing::Test {
 protected:
  void MakeExperiment(std::vector<int64_t> steps, double quantile, int32_t minimum_peers = 0) {
    experiment_.set_id("01J00000000000000000000000");
    experiment_.set_display_name("sweep");
    v1::EarlyStop& rule = *experiment_.mutable_sweep()->mutable_early_stop();
    for (const int64_t step : steps) rule.add_steps(step);
    rule.set_quantile(quantile);
    rule.set_minimum_peers(minimum_peers);
    ASSERT_TRUE(runs_.store()
                    .writer()
                    .Write([&](storage::WriteContext& context) {
                      return storage::InsertExperiment(context, experiment_);
                    })
                    .ok());
  }

  // A run of the experiment that trains.
  std::string AddRun() {
    v1::Run run = runs_.MakeRun();
    run.set_experiment(experiment_.id());
    EXPECT_TRUE(
        runs_.store()
            .writer()
            .Write([&](storage::WriteContext& context) { return storage::InsertRun(context, run); })
            .ok());
    *experiment_.add_runs() = run;
    StartAttempt(run.id());
    return run.id();
  }
  void StartAttempt(const std::string& run) {
    attempts_[run] = runs_.StartAttempt(run).id;
    written_[run] = 1;
    Append(run, fakes::SeriesRecord({"loss"}));
  }

  void StartStopper() {
    stopper_ = std::make_unique<EarlyStopper>(
        runs_.store(), [this](const std::string& run, const std::string& reason) {
          MutexLock lock(mutex_);
          absl::Status answer = answer_;
          if (answer.ok()) stopped_[run].push_back(reason);
          asked_ += 1;
          ready_.NotifyAll();
          return answer;
        });
    ASSERT_TRUE(stopper_->Start().ok());
  }

  void Append(const std::string& run, const std::string& record) {
    ASSERT_TRUE(runs_.Append(attempts_.at(run), written_.at(run)++, {record}).ok());
  }
  void Point(const std::string& run, int64_t step, double loss) {
    Append(run, fakes::StepRecord(step, {loss}));
    Tell();
  }
  void End(const std::string& run, v1::Run::State state) {
    runs_.SetState(run, state);
    Tell();
  }
  // Hands the stopper what was published since.
  void Tell() {
    const auto& published = runs_.published();
    if (stopper_) {
      stopper_->Note({published.begin() + static_cast<std::ptrdiff_t>(told_), published.end()});
    }
    told_ = published.size();
  }

  std::vector<storage::EarlyStopRow> Rows(const std::string& run) {
    std::vector<storage::EarlyStopRow> rows;
    EXPECT_TRUE(runs_.store()
                    .Read([&](storage::Database& database) {
                      auto read = storage::ReadEarlyStops(database, run);
                      if (read.ok()) rows = *std::move(read);
                      return read.status();
                    })
                    .ok());
    return rows;
  }
  // Waits until a run was compared so often and was told what came of it.
  std::vector<storage::EarlyStopRow> WaitForRows(const std::string& run, size_t count) {
    for (int i = 0; i < 20'000; ++i) {
      std::vector<storage::EarlyStopRow> rows = Rows(run);
      if (rows.size() >= count && (rows.empty() || !rows.back().pending)) return rows;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << run << " was not compared";
    return Rows(run);
  }
  std::vector<std::string> ReasonsOf(const std::string& run) {
    MutexLock lock(mutex_);
    return stopped_[run];
  }
  void WaitUntilAsked(int times) {
    MutexLock lock(mutex_);
    while (asked_ < times) ready_.Wait(mutex_);
  }

  fakes::StoredRuns runs_;
  v1::Experiment experiment_;
  std::map<std::string, int64_t> attempts_;
  std::map<std::string, uint64_t> written_;
  size_t told_ = 0;
  Mutex mutex_;
  CondVar ready_;
  absl::Status answer_;
  std::map<std::string, std::vector<std::string>> stopped_;
  int asked_ = 0;
  std::unique_ptr<EarlyStopper> stopper_;  // the first to go
};

TEST_F(EarlyStopperTest, ARunThatDoesWorseThanItsPeersIsStoppedAtTheStep) {
  MakeExperiment({2, 4}, .5);
  std::vector<std::string> runs;
  for (int i = 0; i < 5; ++i) runs.push_back(AddRun());
  StartStopper();
  // The first three have too few peers, whatever their loss.
  for (int i = 0; i < 3; ++i) {
    Point(runs[i], 1, 9);
    Point(runs[i], 2, i + 1);
    EXPECT_EQ(WaitForRows(runs[i], 1).front().peers, i);
  }
  Point(runs[3], 1, 0);
  Point(runs[3], 2, 2.5);
  EXPECT_EQ(WaitForRows(runs[3], 1).front().reason,
            "stopped early at step 2: loss 2.5 is above the 0.5 quantile, 2, of 3 peers");
  EXPECT_THAT(ReasonsOf(runs[3]), SizeIs(1));
  // Not above: it goes on, and is looked at again at step 4 only.
  Point(runs[4], 2, 2.25);  // peers: 1, 2, 2.5, 3
  EXPECT_EQ(WaitForRows(runs[4], 1).front().reason, "");
  for (const int i : {0, 1, 2}) Point(runs[i], 4, 1);
  Point(runs[4], 3, 100);
  Point(runs[4], 4, 1.5);
  EXPECT_THAT(WaitForRows(runs[4], 2).back().reason, HasSubstr("at step 4: loss 1.5"));
  for (const int i : {0, 1, 2}) EXPECT_THAT(ReasonsOf(runs[i]), IsEmpty());
}

TEST_F(EarlyStopperTest, WhatDivergedAndWhatHasEndedCountAsPeers) {
  MakeExperiment({2}, .5);
  std::vector<std::string> runs;
  for (int i = 0; i < 5; ++i) runs.push_back(AddRun());
  StartStopper();
  Point(runs[0], 1, kNan);
  End(runs[0], v1::Run::STATE_DIVERGED);  // before the step
  Point(runs[1], 2, 1);
  WaitForRows(runs[1], 1);
  End(runs[1], v1::Run::STATE_SUCCEEDED);
  Point(runs[2], 2, 2);
  EXPECT_EQ(WaitForRows(runs[2], 1).front().peers, 2);
  Point(runs[3], 2, 3);  // the median of infinite, 1 and 2
  EXPECT_THAT(WaitForRows(runs[3], 1).front().reason, HasSubstr("quantile, 2, of 3 peers"));
  // NaN is above every number.
  Point(runs[4], 2, kNan);
  EXPECT_THAT(WaitForRows(runs[4], 1).front().reason, HasSubstr("not finite"));
}

TEST_F(EarlyStopperTest, ABatchThatPassesSeveralStepsIsComparedAtEach) {
  MakeExperiment({1, 2, 3}, .5, 1);
  const std::string peer = AddRun(), run = AddRun();
  for (int step = 1; step <= 3; ++step) Point(peer, step, 1);
  Point(run, 1, .5);
  Point(run, 2, 5);
  Point(run, 3, 5);
  StartStopper();
  EXPECT_THAT(WaitForRows(run, 2).back().reason, HasSubstr("at step 2"));
  EXPECT_THAT(Rows(run), SizeIs(2));  // and no further, because it is stopped
}

TEST_F(EarlyStopperTest, NothingIsComparedTwiceAlsoAfterARestart) {
  MakeExperiment({2}, .5, 1);
  const std::string first = AddRun(), second = AddRun(), third = AddRun();
  StartStopper();
  Point(first, 2, 5);  // no peers yet
  EXPECT_EQ(WaitForRows(first, 1).front().peers, 0);
  Point(second, 2, 1);
  WaitForRows(second, 1);
  stopper_.reset();
  StartStopper();  // now `first` would be above its peers
  Point(third, 2, .5);
  WaitForRows(third, 1);
  Point(first, 3, 5);
  Point(second, 3, 1);
  Point(third, 3, 1);
  stopper_.reset();
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(Rows(first).front().peers, 0);
}

TEST_F(EarlyStopperTest, WhatAServerDidNotGetToTellIsToldByTheNext) {
  MakeExperiment({2}, .5, 1);
  const std::string first = AddRun(), second = AddRun();
  answer_ = absl::ResourceExhaustedError("no room");
  StartStopper();
  Point(first, 2, 1);
  WaitForRows(first, 1);
  Point(second, 2, 5);
  WaitUntilAsked(1);
  stopper_.reset();
  EXPECT_TRUE(Rows(second).front().pending);
  answer_ = absl::OkStatus();
  StartStopper();
  EXPECT_THAT(WaitForRows(second, 1), SizeIs(1));
  EXPECT_THAT(ReasonsOf(second), ElementsAre(HasSubstr("loss 5 is above the 0.5 quantile, 1")));
}

TEST_F(EarlyStopperTest, WhatCouldNotBeToldForNowIsTriedAgain) {
  MakeExperiment({2}, .5, 1);
  const std::string first = AddRun(), second = AddRun();
  answer_ = absl::ResourceExhaustedError("no room");
  StartStopper();
  Point(first, 2, 1);
  WaitForRows(first, 1);
  Point(second, 2, 5);
  WaitUntilAsked(1);
  {
    MutexLock lock(mutex_);
    answer_ = absl::OkStatus();
  }
  WaitUntilAsked(2);
  EXPECT_FALSE(WaitForRows(second, 1).front().pending);
}

TEST_F(EarlyStopperTest, ARunThatIsTriedAgainIsNotStoppedAtTheSameStepAgain) {
  MakeExperiment({2, 4}, .5, 1);
  const std::string first = AddRun(), second = AddRun();
  StartStopper();
  Point(first, 2, 1);
  WaitForRows(first, 1);
  Point(second, 2, 5);
  WaitForRows(second, 1);
  runs_.SetState(second, v1::Run::STATE_CANCELLING);
  End(second, v1::Run::STATE_CANCELLED);
  runs_.SetState(second, v1::Run::STATE_QUEUED);
  StartAttempt(second);
  Point(second, 2, 5);
  Point(second, 3, 5);
  Point(first, 4, 1);
  WaitForRows(first, 2);
  EXPECT_THAT(ReasonsOf(second), SizeIs(1));
  Point(second, 4, 5);
  EXPECT_THAT(WaitForRows(second, 2).back().reason, HasSubstr("at step 4"));
  EXPECT_THAT(ReasonsOf(second), SizeIs(2));
}

TEST_F(EarlyStopperTest, RunsAddedLaterAndExperimentsMadeLaterAreWatchedToo) {
  StartStopper();
  MakeExperiment({2}, .5, 1);
  const std::string first = AddRun();
  stopper_->Watch(experiment_);
  Point(first, 2, 1);
  WaitForRows(first, 1);
  const std::string second = AddRun();  // into the experiment, by a submit of its own
  Point(second, 2, 5);
  EXPECT_THAT(WaitForRows(second, 1).front().reason, HasSubstr("loss 5"));
}

TEST_F(EarlyStopperTest, ADeletedRunTakesItsComparisonsAlong) {
  MakeExperiment({2}, .5, 1);
  const std::string run = AddRun();
  StartStopper();
  Point(run, 2, 1);
  WaitForRows(run, 1);
  End(run, v1::Run::STATE_SUCCEEDED);
  ASSERT_TRUE(
      runs_.store()
          .writer()
          .Write([&](storage::WriteContext& context) { return storage::DeleteRun(context, run); })
          .ok());
  EXPECT_THAT(Rows(run), IsEmpty());
}

}  // namespace
}  // namespace normlab::app
