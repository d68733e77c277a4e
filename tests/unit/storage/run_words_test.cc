// What people say about runs, and the settings that lists look at.
#include <string>
#include <variant>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/domain/settings.h"
#include "server/storage/migrations.h"
#include "server/storage/run_description.h"
#include "server/storage/run_settings.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::storage {
namespace {

using fakes::StoredRuns;
using ::testing::ElementsAre;

absl::Status Describe(StoredRuns& runs, const std::string& run, const RunDescription& words) {
  return runs.store().writer().Write(
      [&](WriteContext& context) { return DescribeRun(context, run, words); });
}

// The setting as run_settings has it, in SQLite's own notation; "(none)" without a row.
std::string Stored(Database& database, const std::string& run, const std::string& name) {
  Statement select =
      database.Prepared("SELECT quote(value) FROM run_settings WHERE name = ?1 AND run = ?2");
  select.Bind(1, name);
  select.Bind(2, run);
  return select.Step() ? select.Text(0) : "(none)";
}

TEST(RunWordsTest, ChangesWhatIsGivenAndLeavesTheRest) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  RunDescription words;
  words.display_name = "=1+1, \"<img onerror>\"/../✓";
  words.labels = {"b", "a, \"quoted\""};
  words.notes = "two\nlines";
  words.pinned = true;
  ASSERT_TRUE(Describe(runs, run, words).ok());
  RunDescription archived;
  archived.archived = true;
  ASSERT_TRUE(Describe(runs, run, archived).ok());
  runs.Close();
  runs.Open();
  const v1::Run read = runs.Read(run);
  EXPECT_EQ(read.display_name(), "=1+1, \"<img onerror>\"/../✓");
  EXPECT_THAT(read.labels(), ElementsAre("a, \"quoted\"", "b"));
  EXPECT_EQ(read.notes(), "two\nlines");
  EXPECT_TRUE(read.pinned());
  EXPECT_TRUE(read.archived());
}

TEST(RunWordsTest, ReplacesLabelsAndTellsWatchersOnce) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  RunDescription words;
  words.labels = {"a", "b"};
  ASSERT_TRUE(Describe(runs, run, words).ok());
  runs.published().clear();
  words.labels = {"c"};
  ASSERT_TRUE(Describe(runs, run, words).ok());
  ASSERT_EQ(runs.published().size(), 1u);
  EXPECT_THAT(runs.published()[0]->message().run().labels(), ElementsAre("c"));
  words.labels = std::vector<std::string>();
  ASSERT_TRUE(Describe(runs, run, words).ok());
  EXPECT_EQ(runs.Read(run).labels_size(), 0);
}

TEST(RunWordsTest, ARunThatIsNotThereIsNotFound) {
  StoredRuns runs;
  RunDescription words;
  words.labels = {"a"};
  EXPECT_TRUE(absl::IsNotFound(Describe(runs, "01ARZ3NDEKTSV4RRFFQ69G5FAV", words)));
}

TEST(RunSettingsTest, HasEverySettingOfARunByItsDeclaredName) {
  StoredRuns runs;
  const std::string run = runs.AddRun("auto", 7);
  const v1::Run stored = runs.Read(run);
  ASSERT_TRUE(runs.store()
                  .Read([&](Database& database) {
                    for (const domain::SettingInfo& setting : domain::Settings()) {
                      EXPECT_NE(Stored(database, run, setting.name), "(none)") << setting.name;
                    }
                    EXPECT_EQ(Stored(database, run, "steps"), "7");
                    EXPECT_EQ(Stored(database, run, "causal"),
                              stored.effective_spec().causal() ? "1" : "0");
                    EXPECT_EQ(Stored(database, run, "placement"),
                              "'" + stored.effective_spec().placement() + "'");
                    EXPECT_EQ(Stored(database, run, "learning_rate").find('\''), std::string::npos);
                    return absl::OkStatus();
                  })
                  .ok());
}

TEST(RunSettingsTest, DeletesThoseOfOneRun) {
  StoredRuns runs;
  const std::string gone = runs.AddRun(), kept = runs.AddRun();
  ASSERT_TRUE(runs.store()
                  .writer()
                  .Write([&](WriteContext& context) {
                    // Of a setting that no longer exists.
                    Statement insert = context.database.Prepared(
                        "INSERT INTO run_settings (name, run, value) VALUES ('zz_old', ?1, 1)");
                    insert.Bind(1, gone);
                    if (auto status = insert.Run(); !status.ok()) return status;
                    return DeleteRunSettings(context.database, gone);
                  })
                  .ok());
  ASSERT_TRUE(runs.store()
                  .Read([&](Database& database) {
                    Statement count =
                        database.Prepared("SELECT run, count(*) FROM run_settings GROUP BY run");
                    EXPECT_TRUE(count.Step());
                    EXPECT_EQ(count.Text(0), kept);
                    EXPECT_EQ(count.Integer(1), static_cast<int64_t>(domain::Settings().size()));
                    EXPECT_FALSE(count.Step());
                    return count.status();
                  })
                  .ok());
}

TEST(RunSettingsTest, RunsOfTheFirstSchemaGetTheirsWhenTheFileIsOpened) {
  StoredRuns runs;
  runs.Close();
  const std::filesystem::path path = runs.directory() / "normlab.db";
  for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path.string() + end);
  {
    auto database = Database::Open(path, Database::Access::kReadWrite);
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE((*database)->Execute(std::string(Migrations()[0])).ok());
    ASSERT_TRUE((*database)
                    ->Execute("PRAGMA user_version = 1;"
                              "INSERT INTO runs (id, display_name, user_name, spec, "
                              "effective_spec, device, state, create_time, steps, "
                              "changed_sequence) VALUES ('01ARZ3NDEKTSV4RRFFQ69G5FAV', 'old', "
                              "'lab1', '{}', '{\"layers\":\"12\",\"learningRate\":0.002,"
                              "\"placement\":\"pre\",\"causal\":false,\"ofTheFuture\":3}', 'auto', "
                              "7, 1, 180, 1);"
                              "INSERT INTO attempts (id, run, number, device, directory, "
                              "token_sha256, start_time, started_sequence) VALUES (5, "
                              "'01ARZ3NDEKTSV4RRFFQ69G5FAV', 1, 'cpu:0', 'attempts/x', '', 1, 1);"
                              "INSERT INTO series VALUES (9, 5, 0, 'loss');"
                              "INSERT INTO points VALUES (9, 1, 0.5);"
                              "INSERT INTO meta VALUES ('store_id', 'abc'), ('sequence', 1);")
                    .ok());
  }
  runs.Open();
  ASSERT_TRUE(runs.store()
                  .Read([&](Database& database) {
                    const std::string run = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
                    EXPECT_EQ(Stored(database, run, "layers"), "12");
                    EXPECT_EQ(Stored(database, run, "learning_rate"), "0.002");
                    EXPECT_EQ(Stored(database, run, "placement"), "'pre'");
                    EXPECT_EQ(Stored(database, run, "causal"), "0");
                    Statement curve = database.Prepared("SELECT name, value FROM curves");
                    EXPECT_TRUE(curve.Step());
                    EXPECT_EQ(curve.Text(0), "loss");
                    return curve.status();
                  })
                  .ok());
  EXPECT_EQ(runs.Read("01ARZ3NDEKTSV4RRFFQ69G5FAV").attempts_size(), 1);
}

TEST(RunSettingsTest, IdsOfAttemptsAndSeriesAreNeverGivenTwice) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  const AttemptRow first = runs.StartAttempt(run);
  ASSERT_TRUE(runs.Append(first.id, 1, {fakes::SeriesRecord({"loss"})}).ok());
  int64_t series = 0;
  ASSERT_TRUE(runs.store()
                  .writer()
                  .Write([&](WriteContext& context) {
                    Statement last = context.database.Prepared("SELECT max(id) FROM series");
                    if (last.Step()) series = last.Integer(0);
                    return context.database.Execute("DELETE FROM series; DELETE FROM attempts");
                  })
                  .ok());
  const std::string other = runs.AddRun();
  const AttemptRow second = runs.StartAttempt(other);
  EXPECT_GT(second.id, first.id);
  ASSERT_TRUE(runs.Append(second.id, 1, {fakes::SeriesRecord({"loss"})}).ok());
  ASSERT_TRUE(runs.store()
                  .Read([&](Database& database) {
                    Statement last = database.Prepared("SELECT max(id) FROM series");
                    EXPECT_TRUE(last.Step());
                    EXPECT_GT(last.Integer(0), series);
                    return last.status();
                  })
                  .ok());
}

}  // namespace
}  // namespace normlab::storage
