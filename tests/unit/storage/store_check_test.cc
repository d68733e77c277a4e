#include "server/storage/store_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::storage {
namespace {

using fakes::SeriesRecord;
using fakes::StepRecord;
using fakes::StoredRuns;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StoreCheckTest : public ::testing::Test {
 protected:
  StoreCheckTest() {
    run_ = runs_.AddRun();
    const AttemptRow attempt = runs_.StartAttempt(run_);
    std::vector<std::string> records = {SeriesRecord({"loss", "gradient_norm"})};
    for (int step = 1; step <= 5000; ++step) records.push_back(StepRecord(step, {1.0 / step, 2}));
    EXPECT_TRUE(runs_.Append(attempt.id, 1, records).ok());
    runs_.Close();
  }
  std::vector<std::string> Faults(const std::string& harm = "") {
    const auto database =
        Database::Open(runs_.directory() / "normlab.db", Database::Access::kReadWrite).value();
    EXPECT_TRUE(database->Execute("PRAGMA foreign_keys = OFF;" + harm).ok());
    const absl::StatusOr<std::vector<std::string>> faults = CheckStore(*database);
    EXPECT_TRUE(faults.ok()) << faults.status();
    return faults.value_or(std::vector<std::string>());
  }

  StoredRuns runs_;
  std::string run_;
};

TEST_F(StoreCheckTest, AGoodStoreHasNoFaultsAndIsLeftAsItIs) {
  EXPECT_THAT(Faults(), IsEmpty());
  EXPECT_THAT(Faults(), IsEmpty()) << "checking again";
}

TEST_F(StoreCheckTest, ABlockThatIsNotThatOfItsPointsIsNamed) {
  EXPECT_THAT(Faults("UPDATE points SET value = 7 WHERE series = 1 AND step = 100"),
              ElementsAre(HasSubstr("series 1: 4 blocks of its levels")))
      << "two of level 1 and 2, each as it is and as it should be";
}

TEST_F(StoreCheckTest, EachKindOfFaultIsNamed) {
  EXPECT_THAT(Faults("INSERT INTO points VALUES (99, 1, 0.5)"), Contains(HasSubstr("series 99")));
  EXPECT_THAT(Faults("UPDATE attempts SET last_step = 4000"),
              Contains(HasSubstr("its points end at step 5000")));
  EXPECT_THAT(Faults("UPDATE journal SET last_step = 6000"),
              Contains(HasSubstr("its journal ends at step 6000")));
  EXPECT_THAT(Faults("INSERT INTO series (attempt, position, name) VALUES (77, 0, 'loss')"),
              Contains(HasSubstr("refers to one of attempts that is missing")));
  EXPECT_THAT(Faults("UPDATE runs SET changed_sequence = 1000000"),
              Contains(HasSubstr("which is yet to come")));
}

}  // namespace
}  // namespace normlab::storage
