// What a run's curve and numbers are when its attempts went on from one another, or did not.
#include "server/storage/lineage.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/storage/curves.h"
#include "tests/fakes/stored_runs.h"
#include "tests/non_finite.h"

namespace normlab::storage {
namespace {

using fakes::CheckpointRecord;
using fakes::SeriesRecord;
using fakes::StepRecord;
using fakes::StoredRuns;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LineageTest : public ::testing::Test {
 protected:
  // A new attempt that goes on from `step` of attempt `origin`, or afresh.
  AttemptRow Start(int32_t origin = 0, int64_t step = 0) {
    AttemptRow attempt;
    EXPECT_TRUE(runs_.store()
                    .writer()
                    .Write([&](WriteContext& context) {
                      AttemptRow row;
                      row.run = run_;
                      row.resumed_from_attempt = origin;
                      row.resumed_from_step = step;
                      absl::StatusOr<AttemptRow> inserted = InsertAttempt(context, row);
                      if (inserted.ok()) attempt = *inserted;
                      return inserted.status();
                    })
                    .ok());
    return attempt;
  }
  // Steps with these losses, and the same as gradient norms, from the one after `step` on.
  void Train(const AttemptRow& attempt, int64_t step, const std::vector<double>& losses) {
    std::vector<std::string> records = {SeriesRecord({"loss", "gradient_norm"})};
    for (const double loss : losses) records.push_back(StepRecord(++step, {loss, loss}));
    ASSERT_TRUE(runs_.Append(attempt.id, 1, records).ok());
  }
  domain::Curve Loss() {
    domain::Curve curve;
    EXPECT_TRUE(runs_.store()
                    .Read([&](Database& database) {
                      auto curves = fakes::ReadCurves(database, run_);
                      if (curves.ok()) curve = (*curves)[0].curve;
                      return curves.status();
                    })
                    .ok());
    return curve;
  }
  std::vector<AttemptRow> Attempts() {
    std::vector<AttemptRow> attempts;
    EXPECT_TRUE(runs_.store()
                    .Read([&](Database& database) {
                      auto read = ReadAttempts(database, run_);
                      if (read.ok()) attempts = *read;
                      return read.status();
                    })
                    .ok());
    return attempts;
  }

  StoredRuns runs_;
  const std::string run_ = runs_.AddRun();
};

TEST_F(LineageTest, AnAttemptThatStartedAfreshHasNothingOfThoseBefore) {
  Train(Start(), 0, {10, 20, 30});
  Train(Start(), 0, {11});
  EXPECT_THAT(Loss().steps, ElementsAre(1));
  EXPECT_THAT(Loss().values, ElementsAre(11));
}

TEST_F(LineageTest, AnAttemptIsNotMixedWithOneThatItDoesNotComeFrom) {
  Train(Start(), 0, {10, 20, 30});
  Train(Start(), 0, {11, 21});  // afresh, and abandoned
  Train(Start(1, 3), 3, {42});
  EXPECT_THAT(Loss().values, ElementsAre(10, 20, 30, 42));
  EXPECT_EQ(runs_.Read(run_).attempts(2).resumed_from_attempt(), 1);
}

TEST_F(LineageTest, ACheckpointBeyondWhatWasGoneOnFromIsNoneOfTheRun) {
  const AttemptRow first = Start();
  ASSERT_TRUE(runs_
                  .Append(first.id, 1,
                          {SeriesRecord({"loss"}), StepRecord(1, {1}), CheckpointRecord(1),
                           StepRecord(2, {2}), CheckpointRecord(2), StepRecord(3, {3}),
                           CheckpointRecord(3)})
                  .ok());
  const auto steps = [&] {
    std::vector<int64_t> steps;
    for (const Checkpoint& checkpoint : CheckpointsOf(Attempts())) steps.push_back(checkpoint.step);
    return steps;
  };
  EXPECT_THAT(steps(), ElementsAre(3, 2)) << "the latest and the one before it";
  Train(Start(1, 2), 2, {5});  // the file of the latest was gone
  EXPECT_THAT(steps(), ElementsAre(2));
  Train(Start(), 0, {7});
  EXPECT_THAT(steps(), IsEmpty()) << "it started afresh";
}

TEST_F(LineageTest, ANewAttemptTakesBackTheNumbersOfWhatWasAbandoned) {
  Train(Start(), 0, {10, 5, 8, kInfinity, 1, kNan});
  ASSERT_EQ(runs_.Read(run_).summary().min_loss(), 1);
  Start(1, 3);
  const v1::Run resumed = runs_.Read(run_);
  EXPECT_EQ(resumed.progress().step(), 3);
  EXPECT_EQ(resumed.summary().final_loss(), 8);
  EXPECT_EQ(resumed.summary().min_loss(), 5);
  EXPECT_EQ(resumed.summary().final_gradient_norm(), 8);
  EXPECT_EQ(resumed.summary().max_gradient_norm(), 10);
  EXPECT_FALSE(resumed.summary().has_first_bad_step());
}

TEST_F(LineageTest, WhatIsKeptOfAnAttemptKeepsItsNumbers) {
  Train(Start(), 0, {10, kNan, 3, kNan, 1});
  Start(1, 4);
  const v1::Summary summary = runs_.Read(run_).summary();
  EXPECT_TRUE(summary.has_final_loss());
  EXPECT_TRUE(std::isnan(summary.final_loss())) << "NaN, not missing";
  EXPECT_EQ(summary.min_loss(), 3);
  EXPECT_EQ(summary.max_gradient_norm(), 10);
  EXPECT_EQ(summary.first_bad_step(), 2);
}

TEST_F(LineageTest, ANewAttemptThatStartsAfreshHasNoNumbersYet) {
  Train(Start(), 0, {10, kNan, 3});
  Start();
  const v1::Run fresh = runs_.Read(run_);
  EXPECT_EQ(fresh.progress().step(), 0);
  EXPECT_FALSE(fresh.summary().has_final_loss());
  EXPECT_FALSE(fresh.summary().has_min_loss());
  EXPECT_FALSE(fresh.summary().has_max_gradient_norm());
  EXPECT_FALSE(fresh.summary().has_first_bad_step());
}

TEST_F(LineageTest, NumbersGoOnFromThoseThatWereKept) {
  Train(Start(), 0, {10, 5, 8, 1});
  Train(Start(1, 3), 3, {7, 6});
  Train(Start(2, 5), 5, {9});
  const v1::Run run = runs_.Read(run_);
  EXPECT_THAT(Loss().values, ElementsAre(10, 5, 8, 7, 6, 9));
  EXPECT_EQ(run.summary().final_loss(), 9);
  EXPECT_EQ(run.summary().min_loss(), 5);
  EXPECT_EQ(run.progress().step(), 6);
}

TEST_F(LineageTest, AnOriginThatIsNotThereIsRefused) {
  Start();
  const absl::Status status = runs_.store().writer().Write([&](WriteContext& context) {
    AttemptRow row;
    row.run = run_;
    row.resumed_from_step = 3;
    return InsertAttempt(context, row).status();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace normlab::storage
