#include "server/storage/store.h"

#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/storage/curves.h"
#include "server/storage/migrations.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::storage {
namespace {

using fakes::FinishedRecord;
using fakes::SeriesRecord;
using fakes::StepRecord;
using fakes::StoredRuns;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<NamedCurve> Curves(StoredRuns& runs, const std::string& run, StepRange range = {}) {
  std::vector<NamedCurve> curves;
  EXPECT_TRUE(runs.store()
                  .Read([&](Database& database) {
                    auto read = ReadDefaultCurves(database, run, {}, range);
                    if (read.ok()) curves = *read;
                    return read.status();
                  })
                  .ok());
  return curves;
}

TEST(StoreTest, KeepsPointsExactlyIncludingNonFiniteOnes) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  const AttemptRow attempt = runs.StartAttempt(run);
  ASSERT_TRUE(runs.Append(attempt.id, 1,
                          {SeriesRecord({"loss"}), StepRecord(1, {0.1}), StepRecord(2, {kNan}),
                           StepRecord(3, {kInfinity}), StepRecord(5, {-kInfinity}),
                           StepRecord(6, {5e-324})})
                  .ok());
  runs.Close();
  runs.Open();
  const std::vector<NamedCurve> curves = Curves(runs, run);
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_THAT(curves[0].curve.steps, ElementsAre(1, 2, 3, 5, 6));
  EXPECT_EQ(curves[0].curve.values[0], 0.1);
  EXPECT_TRUE(std::isnan(curves[0].curve.values[1]));
  EXPECT_EQ(curves[0].curve.values[2], kInfinity);
  EXPECT_EQ(curves[0].curve.values[3], -kInfinity);
  EXPECT_EQ(curves[0].curve.values[4], 5e-324);
}

TEST(StoreTest, RecordsSentAgainAreStoredOnce) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  const AttemptRow attempt = runs.StartAttempt(run);
  const std::vector<std::string> records = {SeriesRecord({"loss"}), StepRecord(1, {4}),
                                            StepRecord(2, {3}), StepRecord(3, {2})};
  ASSERT_TRUE(runs.Append(attempt.id, 1, {records[0], records[1], records[2]}).ok());
  runs.Close();
  runs.Open();
  ASSERT_TRUE(runs.Append(attempt.id, 1, records).ok());
  EXPECT_THAT(Curves(runs, run)[0].curve.values, ElementsAre(4, 3, 2));
  EXPECT_EQ(runs.Read(run).progress().step(), 3);
}

TEST(StoreTest, RefusesAGapInTheRecordsAndStoresNothingOfIt) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  const AttemptRow attempt = runs.StartAttempt(run);
  ASSERT_TRUE(runs.Append(attempt.id, 1, {SeriesRecord({"loss"}), StepRecord(1, {4})}).ok());
  const absl::Status status = runs.Append(attempt.id, 4, {StepRecord(3, {2})});
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), HasSubstr("records 3 to 3 are missing"));
  EXPECT_THAT(Curves(runs, run)[0].curve.steps, ElementsAre(1));
}

TEST(StoreTest, ABadRecordUndoesItsBatchAndNothingElse) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  const AttemptRow attempt = runs.StartAttempt(run);
  ASSERT_TRUE(runs.Append(attempt.id, 1, {SeriesRecord({"loss"}), StepRecord(1, {4})}).ok());
  EXPECT_FALSE(runs.Append(attempt.id, 3, {StepRecord(2, {3}), "\xFF garbage"}).ok());
  EXPECT_FALSE(runs.Append(attempt.id, 3, {StepRecord(2, {3, 1, 1})}).ok()) << "undeclared series";
  EXPECT_FALSE(runs.Append(attempt.id, 3, {StepRecord(1, {3})}).ok()) << "a step twice";
  EXPECT_THAT(Curves(runs, run)[0].curve.steps, ElementsAre(1));
  ASSERT_TRUE(runs.Append(attempt.id, 3, {StepRecord(2, {3})}).ok());
  EXPECT_THAT(Curves(runs, run)[0].curve.values, ElementsAre(4, 3));
}

TEST(StoreTest, SummaryKeepsExtremesAndTheFirstBadStep) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  const AttemptRow attempt = runs.StartAttempt(run);
  ASSERT_TRUE(runs.Append(attempt.id, 1,
                          {SeriesRecord({"loss", "gradient_norm"}), StepRecord(1, {4, 0.5}),
                           StepRecord(2, {1, 7}), StepRecord(3, {2, kInfinity}),
                           StepRecord(4, {kNan, kNan}),
                           FinishedRecord(worker::v1::Finished::OUTCOME_DIVERGED, "NaN")})
                  .ok());
  const v1::Summary summary = runs.Read(run).summary();
  EXPECT_TRUE(std::isnan(summary.final_loss()));
  EXPECT_EQ(summary.min_loss(), 1);
  EXPECT_EQ(summary.max_gradient_norm(), kInfinity);
  EXPECT_EQ(summary.first_bad_step(), 3);
}

TEST(StoreTest, DefaultCurveFollowsLineage) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  const AttemptRow first = runs.StartAttempt(run);
  ASSERT_TRUE(runs.Append(first.id, 1,
                          {SeriesRecord({"loss"}), StepRecord(1, {10}), StepRecord(2, {20}),
                           StepRecord(3, {30}), StepRecord(4, {40})})
                  .ok());
  const AttemptRow second = runs.StartAttempt(run, /*resumed_from=*/2);
  ASSERT_TRUE(
      runs.Append(second.id, 1, {SeriesRecord({"loss"}), StepRecord(3, {31}), StepRecord(4, {41})})
          .ok());
  const std::vector<NamedCurve> curves = Curves(runs, run);
  EXPECT_THAT(curves[0].curve.steps, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(curves[0].curve.values, ElementsAre(10, 20, 31, 41));
  EXPECT_THAT(Curves(runs, run, {2, 3})[0].curve.values, ElementsAre(20, 31));
}

TEST(StoreTest, PublishesOnlyWhatIsDurableWithRisingSequences) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  const AttemptRow attempt = runs.StartAttempt(run);
  ASSERT_TRUE(runs.Append(attempt.id, 1, {SeriesRecord({"loss"}), StepRecord(1, {4})}).ok());
  ASSERT_FALSE(runs.Append(attempt.id, 9, {StepRecord(2, {4})}).ok());
  ASSERT_TRUE(runs.Append(attempt.id, 3, {StepRecord(2, {3})}).ok());
  uint64_t last = 0;
  int points = 0;
  for (const domain::EventPtr& event : runs.published()) {
    EXPECT_GE(event->sequence(), last);
    last = event->sequence();
    if (event->message().has_points()) ++points;
  }
  EXPECT_EQ(points, 2);
  uint64_t stored = 0;
  ASSERT_TRUE(runs.store()
                  .Read([&](Database& database) {
                    stored = ReadSequence(database).value();
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(stored, last);
}

TEST(StoreTest, HistoryResumesBehindAnySequenceWithoutGapOrRepeat) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  const AttemptRow attempt = runs.StartAttempt(run);
  ASSERT_TRUE(runs.Append(attempt.id, 1, {SeriesRecord({"loss", "extra"})}).ok());
  for (int64_t step = 1; step <= 40; ++step) {
    ASSERT_TRUE(runs.Append(attempt.id, static_cast<uint64_t>(step + 1),
                            {StepRecord(step, {double(step), -double(step)})})
                    .ok());
  }
  for (const domain::EventPtr& event : runs.published()) {
    if (!event->message().has_points()) continue;
    const int64_t seen = event->message().points().columns(0).steps(0);
    std::vector<int64_t> rest;
    ASSERT_TRUE(
        runs.store()
            .Read([&](Database& database) -> absl::Status {
              HistoryPosition position = PositionAt(database, run, event->sequence()).value();
              for (bool complete = false; !complete;) {
                const HistoryPage page = ReadHistory(database, run, position, 0, 14).value();
                for (const v1::Points& points : page.points) {
                  EXPECT_EQ(points.columns_size(), 2);
                  for (const int64_t step : points.columns(0).steps()) rest.push_back(step);
                }
                position = page.position;
                complete = page.complete;
              }
              return absl::OkStatus();
            })
            .ok());
    std::vector<int64_t> expected;
    for (int64_t step = seen + 1; step <= 40; ++step) expected.push_back(step);
    EXPECT_EQ(rest, expected);
  }
}

TEST(StoreTest, StatesFollowTheRulesOnly) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  const auto become = [&](v1::Run::State state) {
    return runs.store().writer().Write([&](WriteContext& context) {
      return UpdateRun(context, run, [&](v1::Run& changed) {
        changed.set_state(state);
        return absl::OkStatus();
      });
    });
  };
  EXPECT_EQ(become(v1::Run::STATE_RUNNING).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(become(v1::Run::STATE_CANCELLED).ok());
  EXPECT_TRUE(runs.Read(run).has_end_time());
  EXPECT_EQ(become(v1::Run::STATE_QUEUED).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(StoreTest, FilesAreClosedToOthers) {
  StoredRuns runs;
  struct stat info;
  ASSERT_EQ(stat((runs.directory() / "normlab.db").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 077, 0u);
}

TEST(StoreTest, ACleanEndLeavesOneFile) {
  StoredRuns runs;
  runs.Read(runs.AddRun());
  runs.Close();
  EXPECT_FALSE(std::filesystem::exists(runs.directory() / "normlab.db-wal"));
}

TEST(StoreTest, ANewerSchemaIsRefusedUntouched) {
  StoredRuns runs;
  runs.Close();
  const std::filesystem::path path = runs.directory() / "normlab.db";
  {
    auto database = Database::Open(path, Database::Access::kReadWrite).value();
    ASSERT_TRUE(database->Execute("PRAGMA user_version = 999").ok());
  }
  Store::Options options;
  options.path = path;
  options.clock = &runs.clock();
  const absl::Status status = Store::Open(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("schema 999"));
}

TEST(StoreTest, AFileThatIsNoDatabaseIsRefused) {
  fakes::TempDir dir;
  fakes::FakeClock clock;
  std::ofstream(dir.path() / "normlab.db") << std::string(8192, 'x');
  Store::Options options;
  options.path = dir.path() / "normlab.db";
  options.clock = &clock;
  EXPECT_EQ(Store::Open(options).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace normlab::storage
