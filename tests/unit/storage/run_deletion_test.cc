#include "server/storage/run_deletion.h"

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/storage/lineage.h"
#include "server/storage/run_description.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::storage {
namespace {

using fakes::StoredRuns;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::StartsWith;

absl::Status Delete(StoredRuns& runs, const std::string& run) {
  return runs.store().writer().Write(
      [&](WriteContext& context) { return DeleteRun(context, run); });
}

// A run of `steps` steps with two series, a checkpoint, a label and notes; ended.
std::string WholeRun(StoredRuns& runs, int64_t steps) {
  const std::string run = runs.AddRun();
  const AttemptRow attempt = runs.StartAttempt(run);
  std::vector<std::string> records = {fakes::SeriesRecord({"loss", "gradient_norm"})};
  for (int64_t step = 1; step <= steps; ++step) {
    records.push_back(fakes::StepRecord(step, {0.5, 2.0}));
  }
  records.push_back(fakes::CheckpointRecord(steps));
  EXPECT_TRUE(runs.Append(attempt.id, 1, records).ok());
  RunDescription words;
  words.labels = {"a", "b"};
  words.notes = "notes";
  EXPECT_TRUE(runs.store()
                  .writer()
                  .Write([&](WriteContext& context) {
                    if (auto ended = EndAttempt(context, attempt.id, {}); !ended.ok()) return ended;
                    return DescribeRun(context, run, words);
                  })
                  .ok());
  runs.SetState(run, v1::Run::STATE_SUCCEEDED);
  return run;
}

// Rows of every table of the database, but those that every write or every deletion adds to.
std::map<std::string, int64_t> Rows(StoredRuns& runs) {
  std::map<std::string, int64_t> rows;
  EXPECT_TRUE(
      runs.store()
          .Read([&](Database& database) {
            std::vector<std::string> tables;
            Statement names = database.Prepared(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN "
                "('meta', 'deleted_runs', 'sqlite_sequence')");
            while (names.Step()) tables.push_back(names.Text(0));
            static std::map<std::string, std::string> sql;  // Prepared keeps a view of it
            for (const std::string& table : tables) {
              const auto& text =
                  sql.emplace(table, "SELECT count(*) FROM \"" + table + "\"").first->second;
              Statement count = database.Prepared(text);
              EXPECT_TRUE(count.Step());
              rows[table] = count.Integer(0);
            }
            return names.status();
          })
          .ok());
  return rows;
}

// Sweeps until nothing is left; the number of pieces.
int Sweep(StoredRuns& runs, int64_t rows) {
  int pieces = 0;
  bool more = true;
  while (more) {
    EXPECT_TRUE(runs.store()
                    .writer()
                    .Write([&](WriteContext& context) -> absl::Status {
                      const absl::StatusOr<bool> swept = SweepGarbage(context.database, rows);
                      if (!swept.ok()) return swept.status();
                      more = *swept;
                      return absl::OkStatus();
                    })
                    .ok());
    ++pieces;
  }
  return pieces;
}

TEST(RunDeletionTest, LeavesNoRowOfTheRunInAnyTable) {
  StoredRuns runs;
  WholeRun(runs, 300);
  const std::map<std::string, int64_t> before = Rows(runs);
  const std::string run = WholeRun(runs, 500);
  ASSERT_TRUE(Delete(runs, run).ok());
  const std::map<std::string, int64_t> at_once = Rows(runs);
  EXPECT_EQ(at_once.at("runs"), before.at("runs"));
  EXPECT_EQ(at_once.at("points"), 1600);
  EXPECT_EQ(at_once.at("garbage"), 2);
  EXPECT_GE(Sweep(runs, 100), 10);
  EXPECT_EQ(Rows(runs), before);
}

// What SQLite goes through for a statement, and for the references to what it deletes.
std::vector<std::string> PlanOf(StoredRuns& runs, const std::string& sql) {
  std::vector<std::string> plan;
  EXPECT_TRUE(runs.store()
                  .writer()
                  .Write([&](WriteContext& context) {
                    Statement select = context.database.Once("EXPLAIN QUERY PLAN " + sql);
                    while (select.Step()) plan.push_back(select.Text(3));
                    return select.status();
                  })
                  .ok());
  return plan;
}

TEST(RunDeletionTest, LooksThroughNoTableOfAllRuns) {
  StoredRuns runs;
  const std::vector<std::string> statements = {"DELETE FROM series WHERE attempt = 1",
                                               "DELETE FROM attempts WHERE run = 'a'",
                                               "DELETE FROM runs WHERE id = 'a'"};
  for (const std::string& sql : statements) {
    EXPECT_THAT(PlanOf(runs, sql), Each(StartsWith("SEARCH "))) << sql;
  }
  // References are in the plan: attempts by the one they went on from, series by their attempt.
  EXPECT_THAT(
      PlanOf(runs, statements[1]),
      IsSupersetOf({HasSubstr("(resumed_from=?)"), HasSubstr("series"), HasSubstr("(run=?)")}));
}

TEST(RunDeletionTest, GoesOnAfterARestart) {
  StoredRuns runs;
  const std::map<std::string, int64_t> before = Rows(runs);
  ASSERT_TRUE(Delete(runs, WholeRun(runs, 250)).ok());
  runs.Close();
  runs.Open();
  Sweep(runs, 64);
  EXPECT_EQ(Rows(runs), before);
}

TEST(RunDeletionTest, PointsOfARunMadeMeanwhileStay) {
  StoredRuns runs;
  ASSERT_TRUE(Delete(runs, WholeRun(runs, 200)).ok());
  const std::string kept = WholeRun(runs, 100);
  Sweep(runs, 50);
  ASSERT_TRUE(runs.store()
                  .Read([&](Database& database) {
                    EXPECT_EQ(CountPoints(database, kept).value_or(-1), 200);
                    return absl::OkStatus();
                  })
                  .ok());
}

TEST(RunDeletionTest, ALiveRunIsRefusedAndSoIsAPinnedOne) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  EXPECT_THAT(Delete(runs, run).message(), HasSubstr("queued; cancel it first"));
  runs.StartAttempt(run);
  EXPECT_THAT(Delete(runs, run).message(), HasSubstr("running; cancel it first"));
  runs.SetState(run, v1::Run::STATE_PAUSING);
  runs.SetState(run, v1::Run::STATE_PAUSED);
  EXPECT_THAT(Delete(runs, run).message(), HasSubstr("paused; cancel it first"));
  const std::string ended = WholeRun(runs, 1);
  RunDescription pin;
  pin.pinned = true;
  ASSERT_TRUE(runs.store()
                  .writer()
                  .Write([&](WriteContext& context) { return DescribeRun(context, ended, pin); })
                  .ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Delete(runs, ended)));
  EXPECT_THAT(Delete(runs, ended).message(), HasSubstr("unpin it first"));
  EXPECT_EQ(runs.Read(run).id(), run);
  EXPECT_EQ(runs.Read(ended).id(), ended);
}

TEST(RunDeletionTest, IsRememberedByItsSequence) {
  StoredRuns runs;
  const std::string first = WholeRun(runs, 1), second = WholeRun(runs, 1);
  ASSERT_TRUE(Delete(runs, first).ok());
  const uint64_t between = runs.published().back()->sequence();
  EXPECT_EQ(runs.published().back()->message().deleted().run(), first);
  ASSERT_TRUE(Delete(runs, second).ok());
  EXPECT_TRUE(absl::IsNotFound(Delete(runs, second)));
  ASSERT_TRUE(runs.store()
                  .Read([&](Database& database) {
                    const auto since =
                        RunsDeletedSince(database, {.id = "", .sequence = between}, 10);
                    EXPECT_EQ(since->size(), 1u);
                    EXPECT_EQ(since->front().id, second);
                    EXPECT_EQ(RunsDeletedSince(database, {}, 10)->size(), 2u);
                    EXPECT_EQ(RunsDeletedSince(database, {}, 1)->size(), 1u);
                    EXPECT_TRUE(WasDeleted(database, first).value_or(false));
                    EXPECT_FALSE(WasDeleted(database, "01ARZ3NDEKTSV4RRFFQ69G5FAV").value_or(true));
                    return absl::OkStatus();
                  })
                  .ok());
}

TEST(RunDeletionTest, OnlyCheckpointsCanBeForgotten) {
  StoredRuns runs;
  const std::string run = WholeRun(runs, 10);
  ASSERT_EQ(runs.Read(run).attempts(0).checkpoint_step(), 10);
  ASSERT_TRUE(runs.store()
                  .writer()
                  .Write([&](WriteContext& context) { return ForgetCheckpoints(context, run); })
                  .ok());
  EXPECT_EQ(runs.Read(run).attempts(0).checkpoint_step(), 0);
  ASSERT_TRUE(runs.store()
                  .Read([&](Database& database) {
                    EXPECT_TRUE(absl::IsNotFound(ReadLatestCheckpoint(database, run).status()));
                    EXPECT_EQ(CountPoints(database, run).value_or(-1), 20);
                    return absl::OkStatus();
                  })
                  .ok());
}

}  // namespace
}  // namespace normlab::storage
