// Databases as released versions left them, opened by this one.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/files.h"
#include "server/base/strings.h"
#include "server/storage/attempts.h"
#include "server/storage/experiments.h"
#include "server/storage/history.h"
#include "server/storage/migrations.h"
#include "server/storage/store_check.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::storage {
namespace {

using fakes::ReadCurves;
using fakes::StepRecord;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kFirstRunning = 4;  // attempts in the fixtures that go on: by schema
constexpr int64_t kSecondRunning = 5;

std::string Id(char number) { return std::string("01J0000000000000000000000") + number; }

class UpgradeTest : public ::testing::TestWithParam<int> {
 protected:
  UpgradeTest() {
    const std::string schema =
        ReadFile(StrCat(NORMLAB_SCHEMAS, "/schema_", GetParam(), ".sql")).value();
    // As those versions made their files.
    const auto database = Database::Open(path_, Database::Access::kReadWrite).value();
    EXPECT_TRUE(database->Execute("PRAGMA auto_vacuum = NONE; VACUUM; " + schema).ok());
  }
  std::unique_ptr<Store> Open(const std::filesystem::path& path) {
    Store::Options options;
    options.path = path;
    options.clock = &clock_;
    return Store::Open(options).value();
  }
  std::unique_ptr<Store> Open() { return Open(path_); }

  // Everything a database is made of, as SQL.
  static std::vector<std::string> Schema(Store& store) {
    std::vector<std::string> all;
    EXPECT_TRUE(store
                    .Read([&](Database& database) {
                      Statement select = database.Prepared(
                          "SELECT type || ' ' || name || ': ' || coalesce(sql, '') "
                          "FROM sqlite_schema ORDER BY type, name");
                      while (select.Step()) all.push_back(select.Text(0));
                      return select.status();
                    })
                    .ok());
    return all;
  }
  static void Read(Store& store, const std::function<void(Database&)>& look) {
    EXPECT_TRUE(store
                    .Read([&](Database& database) {
                      look(database);
                      return absl::OkStatus();
                    })
                    .ok());
  }
  static std::vector<std::string> Texts(Database& database, std::string_view sql) {
    std::vector<std::string> texts;
    Statement select = database.Prepared(sql);
    while (select.Step()) texts.push_back(select.Text(0));
    EXPECT_TRUE(select.status().ok()) << select.status();
    return texts;
  }

  fakes::TempDir dir_;
  fakes::FakeClock clock_;
  const std::filesystem::path path_ = dir_.path() / "normlab.db";
};

TEST_P(UpgradeTest, TheSchemaIsThatOfANewDatabase) {
  const std::unique_ptr<Store> upgraded = Open();
  const std::unique_ptr<Store> fresh = Open(dir_.path() / "fresh.db");
  EXPECT_EQ(Schema(*upgraded), Schema(*fresh));
  EXPECT_EQ(upgraded->store_id(), "0123456789ab");
  EXPECT_EQ(upgraded->opened_at_sequence(), 40u);
}

TEST_P(UpgradeTest, NothingIsWrongWithItsContent) {
  Open();
  const auto database = Database::Open(path_, Database::Access::kReadWrite).value();
  const absl::StatusOr<std::vector<std::string>> faults = CheckStore(*database);
  ASSERT_TRUE(faults.ok()) << faults.status();
  EXPECT_THAT(*faults, IsEmpty());
}

TEST_P(UpgradeTest, AnAttemptThatTrainsBeganWithItsShepherd) {
  const std::unique_ptr<Store> store = Open();
  Read(*store, [](Database& database) {
    EXPECT_DOUBLE_EQ(ReadLatestAttempt(database, Id('6'))->began, 0.99);  // 99 ticks
  });
}

TEST_P(UpgradeTest, RunsReadAsTheyWere) {
  const std::unique_ptr<Store> store = Open();
  Read(*store, [](Database& database) {
    const v1::Run done = ReadRun(database, Id('1')).value();
    EXPECT_EQ(done.display_name(), "done, \"quoted\" <b>");
    EXPECT_EQ(done.state(), v1::Run::STATE_SUCCEEDED);
    EXPECT_EQ(done.colour(), "#4269d0");
    EXPECT_EQ(done.spec().layers(), 2);
    EXPECT_FALSE(done.spec().has_learning_rate());
    EXPECT_EQ(done.effective_spec().layers(), 2);
    EXPECT_EQ(done.effective_spec().placement(), "post");
    EXPECT_EQ(done.effective_spec().learning_rate(), 0.001);
    EXPECT_EQ(done.effective_spec().steps(), 200);
    EXPECT_EQ(done.progress().step(), 200);
    EXPECT_EQ(done.summary().final_loss(), 0.5 / 200);
    EXPECT_EQ(done.summary().parameter_count(), 1234);
    EXPECT_EQ(done.labels_size(), 0);
    EXPECT_EQ(done.notes(), "");
    EXPECT_FALSE(done.pinned());
    EXPECT_FALSE(done.archived());
    EXPECT_EQ(done.attempts_size(), 1);

    const v1::Run diverged = ReadRun(database, Id('2')).value();
    EXPECT_EQ(diverged.state(), v1::Run::STATE_DIVERGED);
    EXPECT_EQ(diverged.end_reason(), "the loss is NaN at step 3");
    EXPECT_TRUE(diverged.summary().has_final_loss());
    EXPECT_TRUE(std::isnan(diverged.summary().final_loss()));
    EXPECT_EQ(diverged.summary().final_gradient_norm(), kInfinity);
    EXPECT_EQ(diverged.summary().first_bad_step(), 2);

    const v1::Run queued = ReadRun(database, Id('3')).value();
    EXPECT_EQ(queued.state(), v1::Run::STATE_QUEUED);
    EXPECT_EQ(queued.wait_reason(), "waits for a device");
    EXPECT_FALSE(queued.summary().has_final_loss());
    EXPECT_EQ(ReadRun(database, Id('4'))->state(), v1::Run::STATE_CANCELLED);
    EXPECT_EQ(ReadRun(database, Id('5'))->exit_signal(), 9);
    EXPECT_EQ(ReadRun(database, Id('6'))->state(), v1::Run::STATE_RUNNING);
    EXPECT_EQ(ReadExperiment(database, "01J0000000000000000000000E")->display_name(),
              "where the norm goes");
  });
}

TEST_P(UpgradeTest, UsersTokensAndSettingsAreThere) {
  const std::unique_ptr<Store> store = Open();
  Read(*store, [](Database& database) {
    EXPECT_THAT(Texts(database, "SELECT name || ' ' || role FROM users ORDER BY id"),
                ElementsAre("lab1 admin", "guest viewer"));
    EXPECT_THAT(Texts(database, "SELECT purpose FROM tokens ORDER BY sha256"),
                ElementsAre("owner", "browser"));
    EXPECT_THAT(Texts(database,
                      "SELECT value FROM run_settings WHERE name = 'layers' ORDER BY run LIMIT 3"),
                ElementsAre("2", "6", "6"));
    EXPECT_THAT(Texts(database, "SELECT label FROM run_labels WHERE run <> '" + Id('5') + "'"),
                IsEmpty());
  });
}

TEST_P(UpgradeTest, WhatPeopleSaidAboutRunsIsThere) {
  if (GetParam() < 5) {
    GTEST_SKIP() << "schema " << GetParam() << " had no labels, notes and pins";
  }
  const std::unique_ptr<Store> store = Open();
  Read(*store, [](Database& database) {
    const v1::Run run = ReadRun(database, Id('5')).value();
    EXPECT_THAT(run.labels(), ElementsAre("best", "ünïcode, \"quoted\""));
    EXPECT_EQ(run.notes(), "worth a look");
    EXPECT_TRUE(run.pinned());
    EXPECT_TRUE(run.archived());
    EXPECT_THAT(Texts(database, "SELECT run FROM deleted_runs"), ElementsAre(Id('9')));
  });
}

TEST_P(UpgradeTest, RunsWaitInTheMiddleClassForNobodyAndAskForNothing) {
  const std::unique_ptr<Store> store = Open();
  Read(*store, [](Database& database) {
    const v1::Run run = ReadRun(database, Id('3')).value();
    EXPECT_EQ(run.priority(), "normal");
    EXPECT_FALSE(run.held());
    EXPECT_EQ(run.after_size(), 0);
    EXPECT_EQ(run.resources().gpus(), 0);
    EXPECT_FALSE(run.resources().exclusive());
  });
}

TEST_P(UpgradeTest, CurvesAreExactAndDrawnFromTheNewLevels) {
  const std::unique_ptr<Store> store = Open();
  Read(*store, [](Database& database) {
    const auto done = ReadCurves(database, Id('1')).value();
    ASSERT_EQ(done.size(), 2u);
    ASSERT_EQ(done[0].curve.steps.size(), 200u);
    for (size_t i = 0; i < 200; ++i) {
      EXPECT_EQ(done[0].curve.steps[i], static_cast<int64_t>(i) + 1);
      EXPECT_EQ(done[0].curve.values[i], 0.5 / static_cast<double>(i + 1));
    }
    EXPECT_THAT(Texts(database, "SELECT count(*) FROM levels WHERE series = 1"), ElementsAre("3"));
    const auto diverged = ReadCurves(database, Id('2')).value();
    EXPECT_EQ(diverged[0].curve.values[0], 4.25);
    EXPECT_EQ(diverged[0].curve.values[1], kInfinity);
    EXPECT_TRUE(std::isnan(diverged[0].curve.values[2]));
    EXPECT_EQ(diverged[1].curve.values[1], -kInfinity);
  });
}

TEST_P(UpgradeTest, TokensGivenBeforeGoOnWhereTheyWere) {
  const std::unique_ptr<Store> store = Open();
  Read(*store, [](Database& database) {
    const std::vector<std::pair<uint64_t, int64_t>> steps_seen = {
        {8, 0}, {9, 80}, {10, 150}, {11, 200}, {25, 200}};
    for (const auto& [sequence, step] : steps_seen) {
      const absl::StatusOr<HistoryPosition> position = PositionAt(database, Id('1'), sequence);
      ASSERT_TRUE(position.ok());
      const HistoryPage page =
          ReadHistory(database, Id('1'), *position, /*from_step=*/0, /*limit=*/1000).value();
      const int64_t next = page.points.empty() ? 201 : page.points[0].columns(0).steps(0);
      EXPECT_EQ(next, step + 1) << "after " << sequence;
    }
  });
}

TEST_P(UpgradeTest, ARunThatTrainsGoesOnWithItsNextRecord) {
  const std::unique_ptr<Store> store = Open();
  const int64_t attempt = GetParam() == 1 ? kFirstRunning : kSecondRunning;
  const uint64_t next = GetParam() == 1 ? 7 : 4;
  const absl::Status written = store->writer().Write([&](WriteContext& context) {
    return store->attempt_log().Append(context, attempt, next, {StepRecord(6, {2.25})});
  });
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_EQ(store->writer().Write([](WriteContext&) { return absl::OkStatus(); }),
            absl::OkStatus());
  Read(*store, [](Database& database) {
    EXPECT_EQ(ReadCurves(database, Id('6')).value()[0].curve.values.back(), 2.25);
    EXPECT_EQ(ReadRun(database, Id('6'))->progress().step(), 6);
  });
}

TEST_P(UpgradeTest, LineageIsThatOfTheCheckpoints) {
  if (GetParam() == 1) {
    GTEST_SKIP() << "schema 1 had no checkpoints";
  }
  const std::unique_ptr<Store> store = Open();
  Read(*store, [](Database& database) {
    EXPECT_THAT(ReadCurves(database, Id('6')).value()[0].curve.values,
                ElementsAre(4.0, 3.5, 3.0, 2.75, 2.5));
    EXPECT_THAT(ReadCurves(database, Id('7')).value()[0].curve.values,
                ElementsAre(3.0, 2.5, 1.75, 1.5));
    const v1::Run paused = ReadRun(database, Id('7')).value();
    EXPECT_EQ(paused.state(), v1::Run::STATE_PAUSED);
    EXPECT_EQ(paused.attempts(1).resumed_from_step(), 2);
    EXPECT_EQ(paused.attempts(1).checkpoint_step(), 4);
    EXPECT_EQ(ReadAttempts(database, Id('7')).value().back().checkpoint_file, "step-4.safetensors");
    EXPECT_EQ(ReadRun(database, Id('1'))->summary().validation_loss(), 1.25);
  });
}

TEST_P(UpgradeTest, OneThatIsKilledInTheMiddleIsTakenBackWhole) {
  const std::string before = ReadFile(path_).value();
  const pid_t child = fork();
  if (child == 0) {
    auto database = Database::Open(path_, Database::Access::kReadWrite);
    std::vector<ComputedStep> steps = ComputedSteps();
    steps.push_back({static_cast<int64_t>(Migrations().size()), [](Database&) {
                       kill(getpid(), SIGKILL);
                       return absl::OkStatus();
                     }});
    Migrate(**database, Migrations(), steps).IgnoreError();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "it was not killed";
  {
    const auto database = Database::Open(path_, Database::Access::kReadWrite).value();
    EXPECT_EQ(database->PragmaInteger("user_version").value(), GetParam());
    EXPECT_THAT(Texts(*database, "SELECT name FROM sqlite_schema WHERE name = 'audit'"), IsEmpty());
    EXPECT_THAT(
        Texts(*database, StrCat("SELECT count(*) FROM ", GetParam() < 4 ? "runs" : "run_specs",
                                " WHERE effective_spec LIKE '{%'")),
        ElementsAre(GetParam() == 1 ? "6" : "7"));
  }
  EXPECT_EQ(ReadFile(path_).value().size(), before.size());
  EXPECT_EQ(Open()->store_id(), "0123456789ab");
}

INSTANTIATE_TEST_SUITE_P(EveryReleasedSchema, UpgradeTest, ::testing::Values(1, 2, 5));

}  // namespace
}  // namespace normlab::storage
