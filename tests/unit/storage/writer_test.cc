#include "server/storage/writer.h"

#include <future>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::storage {
namespace {

using fakes::StoredRuns;
using ::testing::ElementsAre;

// Work handed in while the writer is kept busy, so that it is all there when the next commit is
// cut.
class WriterTest : public ::testing::Test {
 protected:
  Writer& writer() { return runs_.store().writer(); }

  // Keeps the writer in one commit until Release.
  void Occupy() {
    std::promise<void> started;
    std::future<void> has_started = started.get_future();
    writer().Submit(
        [&started, this](WriteContext&) {
          started.set_value();
          released_.get_future().wait();
          return absl::OkStatus();
        },
        nullptr);
    has_started.wait();
  }
  void Release() { released_.set_value(); }
  void Submit(const std::string& name, Load load) {
    writer().Submit(
        [this, name](WriteContext&) {
          ran_.push_back(name);
          return absl::OkStatus();
        },
        nullptr, load);
  }
  // Waits for everything that is not held.
  void Settle() {
    ASSERT_TRUE(writer().Write([](WriteContext&) { return absl::OkStatus(); }).ok());
  }

  StoredRuns runs_;
  std::promise<void> released_;
  std::vector<std::string> ran_;  // on the writer's thread; read after Settle
};

TEST_F(WriterTest, ACommitIsCutAtSoManyRows) {
  Occupy();
  const uint64_t before = writer().commits();
  for (int i = 0; i < 10; ++i) Submit("large", {.rows = 2048});
  Release();
  Settle();
  EXPECT_EQ(writer().commits() - before, 1u + 5u + 1u);
}

TEST_F(WriterTest, WorkLargerThanACommitStillGoesThrough) {
  Submit("huge", {.rows = 1'000'000});
  Settle();
  EXPECT_THAT(ran_, ElementsAre("huge"));
}

TEST_F(WriterTest, HeldBulkWaitsAndKeepsItsOrder) {
  Occupy();
  Submit("points 1", {.bulk = true});
  Submit("state 1", {});
  writer().HoldBulk(true);
  Submit("points 2", {.bulk = true});
  Submit("state 2", {});
  Release();
  Settle();
  EXPECT_THAT(ran_, ElementsAre("state 1", "state 2"));
  writer().HoldBulk(false);
  Settle();
  EXPECT_THAT(ran_, ElementsAre("state 1", "state 2", "points 1", "points 2"));
}

TEST_F(WriterTest, StoppingTellsWhatIsHeld) {
  writer().HoldBulk(true);
  absl::Status told;
  writer().Submit([](WriteContext&) { return absl::OkStatus(); },
                  [&told](const absl::Status& status) { told = status; }, {.bulk = true});
  writer().Stop();
  EXPECT_EQ(told.code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace normlab::storage
