// Records that a trainer should not have sent.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::storage {
namespace {

using fakes::SeriesRecord;
using fakes::StepRecord;
using ::testing::HasSubstr;

std::string StepOf(const std::vector<uint32_t>& series, int64_t step) {
  worker::v1::Record record;
  record.mutable_step()->set_step(step);
  for (const uint32_t index : series) {
    record.mutable_step()->add_series(index);
    record.mutable_step()->add_values(1);
  }
  return record.SerializeAsString();
}

TEST(RecordsTest, ASeriesDeclaredTwiceIsTheTrainersMistake) {
  fakes::StoredRuns runs;
  const AttemptRow attempt = runs.StartAttempt(runs.AddRun());
  for (const auto& records :
       {std::vector{SeriesRecord({"loss", "loss"})},
        std::vector{SeriesRecord({"loss"}), SeriesRecord({"gradient_norm", "loss"})}}) {
    const absl::Status status = runs.Append(attempt.id, 1, records);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("series loss is declared twice"));
  }
  EXPECT_TRUE(runs.Append(attempt.id, 1, {SeriesRecord({"loss"}), StepRecord(1, {4})}).ok());
}

TEST(RecordsTest, ASeriesTwiceInOneStepIsTheTrainersMistake) {
  fakes::StoredRuns runs;
  const AttemptRow attempt = runs.StartAttempt(runs.AddRun());
  ASSERT_TRUE(runs.Append(attempt.id, 1, {SeriesRecord({"loss"})}).ok());
  const absl::Status status = runs.Append(attempt.id, 2, {StepOf({0, 0}, 7)});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("series loss comes twice in step 7"));
  EXPECT_TRUE(runs.Append(attempt.id, 2, {StepOf({0}, 7)}).ok());
}

}  // namespace
}  // namespace normlab::storage
