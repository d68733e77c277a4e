// Databases as released versions left them, opened by this one.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/files.h"
#include "server/base/strings.h"
#include "server/storage/attempts.h"
#include "server/storage/audit.h"
#include "server/storage/experiments.h"
#include "server/storage/history.h"
#include "server/storage/migrations.h"
#include "server/storage/run_control.h"
#include "server/storage/store_check.h"
#include "tests/fakes/stored_runs.h"
#include "tests/non_finite.h"

namespace normlab::storage {
namespace {

using fakes::ReadCurves;
using fakes::StepRecord;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kFirstRunning = 4;  // attempts in the fixtures that go on: by schema
constexpr int64_t kSecondRunning = 5;
constexpr int kTeamSchema = 6;    // the first with classes, dependencies, limits and an audit
constexpr int kMemorySchema = 8;  // the first that stops runs for their GPU's memory

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
  static std::vector<std::string> Schema(Database& database) {
    return Texts(database,
                 "SELECT type || ' ' || name || ': ' || coalesce(sql, '') "
                 "FROM sqlite_schema ORDER BY type, name");
  }
  static std::vector<std::string> Schema(Store& store) {
    std::vector<std::string> all;
    Read(store, [&](Database& database) { all = Schema(database); });
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
    EXPECT_THAT(Texts(database, "SELECT name || ' ' || role FROM users WHERE id < 3 ORDER BY id"),
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

TEST_P(UpgradeTest, RunsThatWereToldToStopKnowWhy) {
  if (GetParam() < kTeamSchema) {
    GTEST_SKIP() << "schema " << GetParam() << " had no reasons to stop a run";
  }
  const std::unique_ptr<Store> store = Open();
  Read(*store, [](Database& database) {
    const v1::Run late = ReadRun(database, Id('8')).value();
    EXPECT_EQ(late.state(), v1::Run::STATE_PAUSING);
    EXPECT_EQ(late.progress().step(), 2);
    EXPECT_EQ(*ReadRunControl(database, Id('8')), (RunControl{.stop_cause = StopCause::kTime}));
    EXPECT_EQ(*ReadRunControl(database, Id('D')),
              (RunControl{.stop_cause = StopCause::kPreempted, .stop_detail = Id('A')}));
    EXPECT_EQ(ReadRun(database, Id('B'))->state(), v1::Run::STATE_CANCELLING);
    EXPECT_EQ(ReadRunControl(database, Id('B'))->stop_cause, StopCause::kEarly);
    EXPECT_EQ(*ReadRunControl(database, Id('A')),
              (RunControl{.not_before = 1767225700000000, .tries = 2, .limits_from = 1}));
    EXPECT_EQ(*ReadRunControl(database, Id('3')), RunControl{}) << "nobody told it to stop";
    EXPECT_DOUBLE_EQ(ReadLatestAttempt(database, Id('8'))->began, 0.99);  // as above: 99 ticks
    EXPECT_THAT(Texts(database, "SELECT run FROM early_stops WHERE pending = 1"),
                ElementsAre(Id('B')));
  });
}

TEST_P(UpgradeTest, TheReasonForWhichARunIsStoppedForItsMemoryIsThere) {
  if (GetParam() < kMemorySchema) {
    GTEST_SKIP() << "schema " << GetParam() << " stopped no run for its memory";
  }
  const std::unique_ptr<Store> store = Open();
  Read(*store, [](Database& database) {
    const RunControl control = ReadRunControl(database, Id('C')).value();
    EXPECT_EQ(control.stop_cause, StopCause::kMemory);
    EXPECT_EQ(control.stop_detail, "it held 9.0 GiB of cuda:0, its budget is 8.0 GiB");
    EXPECT_DOUBLE_EQ(ReadLatestAttempt(database, Id('C'))->began, 12.5);
    EXPECT_THAT(Texts(database, "SELECT gpu_need_bytes FROM runs WHERE gpu_need_bytes > 0"),
                ElementsAre(StrCat(int64_t{3} << 30)));
  });
}

TEST_P(UpgradeTest, TheQueueAsksAndWaitsForWhatItDid) {
  if (GetParam() < kTeamSchema) {
    GTEST_SKIP() << "schema " << GetParam() << " had no classes, resources and dependencies";
  }
  const std::unique_ptr<Store> store = Open();
  Read(*store, [](Database& database) {
    const v1::Run run = ReadRun(database, Id('A')).value();
    EXPECT_EQ(run.state(), v1::Run::STATE_QUEUED);
    EXPECT_EQ(run.priority(), "high");
    EXPECT_TRUE(run.held());
    EXPECT_EQ(run.resources().gpus(), 2);
    EXPECT_EQ(run.resources().gpu_memory_bytes(), int64_t{16} << 30);
    EXPECT_TRUE(run.resources().exclusive());
    EXPECT_EQ(run.after_size(), 2);
    EXPECT_THAT(Texts(database, "SELECT after || ' ' || condition FROM run_dependencies"),
                ElementsAre(Id('1') + " ok", Id('9') + " any"));
    EXPECT_EQ(ReadRun(database, Id('D'))->priority(), "low");
    EXPECT_THAT(Texts(database, "SELECT device || ': ' || reason FROM drained_devices"),
                ElementsAre("cuda:1: its fan is loud"));
    const v1::Experiment sweep = ReadExperiment(database, "01J0000000000000000000000F").value();
    EXPECT_EQ(sweep.sweep().axes(0).setting(), "d_model");
    EXPECT_EQ(sweep.sweep().early_stop().quantile(), 0.5);
  });
}

TEST_P(UpgradeTest, LimitsOfUsersAndTheAuditAreThere) {
  if (GetParam() < kTeamSchema) {
    GTEST_SKIP() << "schema " << GetParam() << " had no limits and no audit";
  }
  const std::unique_ptr<Store> store = Open();
  Read(*store, [](Database& database) {
    EXPECT_THAT(Texts(database,
                      "SELECT name || ' ' || max_running || ' ' || max_queued || ' ' || "
                      "max_gpu_memory_bytes || ' ' || coalesce(remove_time, 'here') "
                      "FROM users ORDER BY id"),
                ElementsAre("lab1 0 0 0 here", StrCat("guest 2 5 ", int64_t{8} << 30, " here"),
                            "left 0 0 0 1767225700000000"));
    const std::vector<v1::AuditEvent> lines = ReadAudit(database, AuditQuery{}).value();
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[0].detail(), "step 100, ünïcode, \"quoted\"");
    EXPECT_EQ(lines[1].subject(), "guest");
    EXPECT_EQ(lines[2].action(), "cancel");
    EXPECT_EQ(lines[2].run(), Id('4'));
  });
}

TEST_P(UpgradeTest, OneThatIsKilledInTheMiddleIsTakenBackWhole) {
  if (GetParam() == static_cast<int>(Migrations().size())) {
    GTEST_SKIP() << "schema " << GetParam() << " is this version's: there is nothing to upgrade";
  }
  const std::string before = ReadFile(path_).value();
  const std::vector<std::string> schema =
      Schema(*Database::Open(path_, Database::Access::kReadWrite).value());
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
    EXPECT_EQ(Schema(*database), schema);
    const std::string runs = GetParam() == 1 ? "6" : GetParam() < kTeamSchema ? "7" : "11";
    EXPECT_THAT(
        Texts(*database, StrCat("SELECT count(*) FROM ", GetParam() < 4 ? "runs" : "run_specs",
                                " WHERE effective_spec LIKE '{%'")),
        ElementsAre(runs));
  }
  EXPECT_EQ(ReadFile(path_).value().size(), before.size());
  EXPECT_EQ(Open()->store_id(), "0123456789ab");
}

INSTANTIATE_TEST_SUITE_P(EveryReleasedSchema, UpgradeTest, ::testing::Values(1, 2, 5, 6, 8));

}  // namespace
}  // namespace normlab::storage
