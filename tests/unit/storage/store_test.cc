#include "server/storage/store.h"

#include <sys/stat.h>

#include <cmath>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/storage/history.h"
#include "server/storage/lineage.h"
#include "server/storage/migrations.h"
#include "tests/fakes/stored_runs.h"
#include "tests/non_finite.h"

namespace normlab::storage {
namespace {

using fakes::CheckpointRecord;
using fakes::FinishedRecord;
using fakes::SeriesRecord;
using fakes::StepRecord;
using fakes::StoredRuns;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<fakes::NamedCurve> Curves(StoredRuns& runs, const std::string& run,
                                      StepRange range = {}) {
  return runs.Curves(run, {range, 0, 0});
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
  const std::vector<fakes::NamedCurve> curves = Curves(runs, run);
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_THAT(curves[0].curve.steps, ElementsAre(1, 2, 3, 5, 6));
  EXPECT_EQ(curves[0].curve.values[0], 0.1);
  EXPECT_TRUE(std::isnan(curves[0].curve.values[1]));
  EXPECT_EQ(curves[0].curve.values[2], kInfinity);
  EXPECT_EQ(curves[0].curve.values[3], -kInfinity);
  EXPECT_EQ(curves[0].curve.values[4], 5e-324);
}

TEST(StoreTest, AnInsertedRunIsGivenBackAndPublishedAsItIsRead) {
  StoredRuns runs;
  const std::string one = runs.AddRun(), other = runs.AddRun();
  v1::Run run = runs.MakeRun();
  run.set_display_name("a \"run\"");
  run.set_user("ann");
  run.set_device("cpu:1");
  run.set_priority("high");
  run.set_held(true);
  run.set_wait_reason("held by ann");
  run.set_colour("#2563eb");
  run.mutable_resources()->set_gpus(2);
  run.mutable_resources()->set_gpu_memory_bytes(int64_t{1} << 40);
  run.mutable_resources()->set_exclusive(true);
  run.mutable_summary()->set_parameter_count(int64_t{1} << 60);
  run.mutable_summary()->set_flops_per_step(1e300 / 3);
  run.mutable_summary()->set_memory_bytes(0);
  run.add_after()->set_run(other);
  run.add_after()->set_run(one);
  run.mutable_after(1)->set_condition("any");
  for (v1::RunSpec* spec : {run.mutable_spec(), run.mutable_effective_spec()}) {
    spec->set_learning_rate(1.0 / 3);
    spec->set_weight_decay(5e-324);
    spec->set_seed(int64_t{1} << 62);
    spec->set_placement("post");
    spec->set_norm_gain(false);
  }
  for (const bool plain : {false, true}) {
    if (plain) run = runs.MakeRun();
    v1::Run given_back;
    ASSERT_TRUE(
        runs.store()
            .writer()
            .Write([&](WriteContext& context) { return InsertRun(context, run, &given_back); })
            .ok());
    EXPECT_EQ(given_back.DebugString(), runs.Read(run.id()).DebugString());
  }
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
  const std::vector<fakes::NamedCurve> curves = Curves(runs, run);
  EXPECT_THAT(curves[0].curve.steps, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(curves[0].curve.values, ElementsAre(10, 20, 31, 41));
  EXPECT_THAT(Curves(runs, run, {2, 3})[0].curve.values, ElementsAre(20, 31));
}

TEST(StoreTest, ALineageOfThreeAttemptsIsOneCurveAndOneSummary) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  const AttemptRow first = runs.StartAttempt(run);
  ASSERT_TRUE(runs.Append(first.id, 1,
                          {SeriesRecord({"loss", "validation_loss"}), StepRecord(1, {10, 9}),
                           StepRecord(2, {20, 8}), CheckpointRecord(2)})
                  .ok());
  const AttemptRow never_started = runs.StartAttempt(run, /*resumed_from=*/2);
  const AttemptRow second = runs.StartAttempt(run, /*resumed_from=*/2);
  EXPECT_EQ(second.number, never_started.number + 1);
  ASSERT_TRUE(runs.Append(second.id, 1, {SeriesRecord({"extra", "loss"})}).ok());
  EXPECT_EQ(runs.Read(run).progress().step(), 2) << "what is done stays done before its first step";
  ASSERT_TRUE(runs.Append(second.id, 2, {StepRecord(3, {-3, 30}), CheckpointRecord(3)}).ok());
  const AttemptRow third = runs.StartAttempt(run, /*resumed_from=*/3);
  EXPECT_FALSE(runs.Append(third.id, 1, {SeriesRecord({"loss"}), StepRecord(3, {31})}).ok())
      << "a step that its checkpoint has already";
  ASSERT_TRUE(runs.Append(third.id, 1, {SeriesRecord({"loss"}), StepRecord(4, {5})}).ok());

  const std::vector<fakes::NamedCurve> curves = Curves(runs, run);
  EXPECT_EQ(curves[0].name, "loss");
  EXPECT_THAT(curves[0].curve.steps, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(curves[0].curve.values, ElementsAre(10, 20, 30, 5));
  EXPECT_THAT(curves[1].curve.steps, ElementsAre(1, 2));
  const v1::Run read = runs.Read(run);
  EXPECT_EQ(read.summary().min_loss(), 5);
  EXPECT_EQ(read.summary().final_loss(), 5);
  EXPECT_EQ(read.summary().validation_loss(), 8);
  EXPECT_EQ(read.attempts(0).checkpoint_step(), 2);
  EXPECT_EQ(read.attempts(3).checkpoint_step(), 0);
  EXPECT_EQ(read.attempts(3).resumed_from_step(), 3);
}

TEST(StoreTest, TheLatestCheckpointIsKeptOverRestarts) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  const AttemptRow attempt = runs.StartAttempt(run);
  const auto latest = [&] {
    absl::StatusOr<Checkpoint> found;
    runs.store()
        .Read([&](Database& database) {
          found = ReadLatestCheckpoint(database, run);
          return absl::OkStatus();
        })
        .IgnoreError();
    return found;
  };
  ASSERT_TRUE(runs.Append(attempt.id, 1, {SeriesRecord({"loss"}), StepRecord(1, {10})}).ok());
  EXPECT_EQ(latest().status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(runs.Append(attempt.id, 3,
                          {CheckpointRecord(1), StepRecord(2, {9}), CheckpointRecord(2),
                           StepRecord(3, {8})})
                  .ok());
  runs.Close();
  runs.Open();
  ASSERT_TRUE(latest().ok());
  EXPECT_EQ(latest()->step, 2);
  EXPECT_EQ(latest()->file, "step-2.safetensors");
  ASSERT_TRUE(runs.Append(attempt.id, 7, {StepRecord(4, {7})}).ok());
  EXPECT_EQ(latest()->step, 2);
}

TEST(StoreTest, ARunIsFoundByIdNameOrPrefix) {
  StoredRuns runs;
  v1::Run first = runs.MakeRun(), second = runs.MakeRun(), twin = runs.MakeRun();
  first.set_id("01J8AAAAAAAAAAAAAAAAAAAAAA");
  first.set_display_name("first");
  second.set_id("01J8BBBBBBBBBBBBBBBBBBBBBB");
  second.set_display_name("01J8A");  // also the beginning of the first one's id
  twin.set_id("01J9CCCCCCCCCCCCCCCCCCCCCC");
  twin.set_display_name("first");
  const absl::Status written = runs.store().writer().Write([&](WriteContext& context) {
    absl::Status status = InsertRun(context, first);
    if (status.ok()) status = InsertRun(context, second);
    return status;
  });
  ASSERT_TRUE(written.ok()) << written;
  const auto resolve = [&](const std::string& text) {
    absl::StatusOr<std::string> id;
    runs.store()
        .Read([&](Database& database) {
          id = ResolveRun(database, text);
          return absl::OkStatus();
        })
        .IgnoreError();
    return id;
  };
  EXPECT_EQ(*resolve(first.id()), first.id());
  EXPECT_EQ(*resolve("first"), first.id());
  EXPECT_EQ(*resolve("01j8b"), second.id());
  EXPECT_EQ(*resolve("01J8A"), second.id()) << "a name counts before a prefix";
  EXPECT_EQ(resolve("01J8").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(resolve("").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(resolve("nobody").status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(runs.store()
                  .writer()
                  .Write([&](WriteContext& context) { return InsertRun(context, twin); })
                  .ok());
  EXPECT_THAT(std::string(resolve("first").status().message()), HasSubstr(twin.id()));
}

TEST(StoreTest, ACheckpointOfNoStepOrOutsideItsFolderIsRefused) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  const AttemptRow attempt = runs.StartAttempt(run);
  ASSERT_TRUE(runs.Append(attempt.id, 1, {SeriesRecord({"loss"}), StepRecord(1, {10})}).ok());
  EXPECT_FALSE(runs.Append(attempt.id, 3, {CheckpointRecord(2)}).ok());
  EXPECT_FALSE(runs.Append(attempt.id, 3, {CheckpointRecord(0)}).ok());
  for (const char* name : {"", ".", "..", "../owner-token", "/etc/passwd", ".hidden"}) {
    worker::v1::Record record;
    record.mutable_checkpoint()->set_step(1);
    record.mutable_checkpoint()->set_file(name);
    EXPECT_FALSE(runs.Append(attempt.id, 3, {record.SerializeAsString()}).ok()) << name;
  }
}

TEST(StoreTest, WhatIsKnownBeforeTrainingStaysKnown) {
  StoredRuns runs;
  v1::Run run = runs.MakeRun();
  run.mutable_summary()->set_parameter_count(610'176);
  run.mutable_summary()->set_flops_per_step(2.97e9);
  run.mutable_summary()->set_memory_bytes(1e8);
  ASSERT_TRUE(runs.store()
                  .writer()
                  .Write([&](WriteContext& context) { return InsertRun(context, run); })
                  .ok());
  EXPECT_EQ(runs.Read(run.id()).summary().parameter_count(), 610'176);
  const AttemptRow attempt = runs.StartAttempt(run.id());
  ASSERT_TRUE(runs.Append(attempt.id, 1, {SeriesRecord({"loss"}), StepRecord(1, {10})}).ok());
  const v1::Summary summary = runs.Read(run.id()).summary();
  EXPECT_EQ(summary.parameter_count(), 610'176);
  EXPECT_EQ(summary.flops_per_step(), 2.97e9);
  EXPECT_EQ(summary.memory_bytes(), 1e8);
  EXPECT_EQ(summary.final_loss(), 10);
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
    ASSERT_TRUE(runs.store()
                    .Read([&](Database& database) -> absl::Status {
                      HistoryPosition position =
                          PositionAt(database, run, event->sequence()).value();
                      for (bool complete = false; !complete;) {
                        const HistoryPage page =
                            ReadHistory(database, run, position, 0, 14).value();
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
  EXPECT_EQ(become(v1::Run::STATE_STARTING).code(), absl::StatusCode::kFailedPrecondition);
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

// A database as the first schema left it, with a run of two attempts in it.
void MakeFirstSchema(const std::filesystem::path& path) {
  auto database = Database::Open(path, Database::Access::kReadWrite).value();
  ASSERT_TRUE(database->Execute(std::string(Migrations()[0])).ok());
  ASSERT_TRUE(database
                  ->Execute(R"sql(
PRAGMA user_version = 1;
INSERT INTO meta (name, value) VALUES ('store_id', 'abc'), ('sequence', 9);
INSERT INTO runs (id, display_name, user_name, spec, effective_spec, device, state, create_time,
                  start_time, step, steps, final_loss, parameter_count, changed_sequence)
VALUES ('01J00000000000000000000001', 'an old run', 'lab1', '{"layers": "6"}',
        '{"layers": "6", "steps": "30"}', 'auto', 3, 1000000, 2000000, 2, 30, 3.5, 42, 7);
INSERT INTO attempts (id, run, number, device, directory, token_sha256, start_time, last_step,
                      persisted_sequence, started_sequence)
VALUES (1, '01J00000000000000000000001', 1, 'cpu:0', 'attempts/a-1', 'x', 2000000, 2, 3, 5);
INSERT INTO series (id, attempt, position, name) VALUES (1, 1, 0, 'loss');
INSERT INTO points (series, step, value) VALUES (1, 1, 4.25), (1, 2, NULL);
INSERT INTO journal (attempt, sequence, last_step) VALUES (1, 7, 2);
)sql")
                  .ok());
}

TEST(StoreTest, TheFirstSchemaIsUpgradedWithEverythingInItAndItsRunGoesOn) {
  fakes::TempDir dir;
  fakes::FakeClock clock;
  const std::filesystem::path path = dir.path() / "normlab.db";
  MakeFirstSchema(path);
  Store::Options options;
  options.path = path;
  options.clock = &clock;
  auto store = Store::Open(options).value();
  EXPECT_EQ(store->store_id(), "abc");
  EXPECT_EQ(store->opened_at_sequence(), 9u);
  const std::string id = "01J00000000000000000000001";
  ASSERT_TRUE(store->writer()
                  .Write([&](WriteContext& context) {
                    return store->attempt_log().Append(context, 1, 4,
                                                       {StepRecord(3, {3}), CheckpointRecord(3)});
                  })
                  .ok());
  const absl::Status read = store->Read([&](Database& database) -> absl::Status {
    EXPECT_EQ(*database.PragmaInteger("user_version"), static_cast<int64_t>(Migrations().size()));
    const v1::Run run = ReadRun(database, id).value();
    EXPECT_EQ(run.display_name(), "an old run");
    EXPECT_EQ(run.effective_spec().layers(), 6);
    EXPECT_EQ(run.state(), v1::Run::STATE_RUNNING);
    EXPECT_EQ(run.summary().parameter_count(), 42);
    EXPECT_FALSE(run.summary().has_memory_bytes());
    EXPECT_FALSE(run.summary().has_validation_loss());
    EXPECT_EQ(run.attempts(0).checkpoint_step(), 3);
    const auto curves = fakes::ReadCurves(database, id).value();
    EXPECT_EQ(curves[0].curve.values[0], 4.25);
    EXPECT_TRUE(std::isnan(curves[0].curve.values[1]));
    EXPECT_EQ(curves[0].curve.values[2], 3);
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
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
