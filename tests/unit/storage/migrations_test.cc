#include "server/storage/migrations.h"

#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"

namespace normlab::storage {
namespace {

class MigrationsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Database> Open() {
    return Database::Open(dir_.path() / "some.db", Database::Access::kReadWrite).value();
  }
  static int64_t Count(Database& database, std::string_view sql) {
    Statement select = database.Prepared(sql);
    return select.Step() ? select.Integer(0) : -1;
  }

  fakes::TempDir dir_;
};

constexpr std::string_view kCountDoubles = "SELECT sum(twice) FROM numbers";

TEST_F(MigrationsTest, AComputedStepFollowsTheSqlOfItsVersion) {
  const std::unique_ptr<Database> database = Open();
  const std::vector<ComputedStep> steps = {{2, [](Database& migrated) {
                                              return migrated.Execute(
                                                  "UPDATE numbers SET twice = 2 * value");
                                            }}};
  ASSERT_TRUE(Migrate(*database, {"CREATE TABLE numbers (value)"}, steps).ok());
  ASSERT_TRUE(database->Execute("INSERT INTO numbers VALUES (3), (4)").ok());
  ASSERT_TRUE(Migrate(*database,
                      {"CREATE TABLE numbers (value)", "ALTER TABLE numbers ADD COLUMN twice",
                       "UPDATE numbers SET twice = twice + 1"},
                      steps)
                  .ok());
  EXPECT_EQ(Count(*database, kCountDoubles), 7 + 9);
  EXPECT_EQ(database->PragmaInteger("user_version").value(), 3);
}

TEST_F(MigrationsTest, AStepThatFailsTakesEveryStepOfTheUpgradeBack) {
  {
    const std::unique_ptr<Database> database = Open();
    ASSERT_TRUE(Migrate(*database, {"CREATE TABLE numbers (value)"}, {}).ok());
    const std::vector<std::string_view> migrations = {"CREATE TABLE numbers (value)",
                                                      "ALTER TABLE numbers ADD COLUMN twice",
                                                      "INSERT INTO numbers VALUES (1, 2)"};
    const std::vector<ComputedStep> steps = {
        {3, [](Database&) { return absl::ResourceExhaustedError("full"); }}};
    EXPECT_EQ(Migrate(*database, migrations, steps).message(), "full");
  }
  const std::unique_ptr<Database> database = Open();
  EXPECT_EQ(database->PragmaInteger("user_version").value(), 1);
  EXPECT_EQ(Count(*database, "SELECT count(*) FROM pragma_table_info('numbers')"), 1);
  EXPECT_EQ(Count(*database, "SELECT count(*) FROM numbers"), 0);
}

}  // namespace
}  // namespace normlab::storage
