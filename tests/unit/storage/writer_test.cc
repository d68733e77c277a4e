#include "server/storage/writer.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/storage/migrations.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::storage {
namespace {

using fakes::StoredRuns;
using ::testing::ElementsAre;

// Work handed in while the writer is kept busy, so that it is all there when the next commit is
// cut.
class WriterTest : public ::testing::Test {
 protected:
  Writer& writer() { return own_ ? *own_ : runs_.store().writer(); }
  // A writer that is cared for as the test says, with a database of its own.
  void Own(std::function<LogCare::Verdict(Database&, bool)> care) {
    std::unique_ptr<Database> database =
        Database::Open(runs_.directory() / "own.db", Database::Access::kReadWrite).value();
    ASSERT_TRUE(Migrate(*database).ok());
    Writer::Options options;
    options.clock = &runs_.clock();
    options.care = std::move(care);
    options.tick = std::chrono::milliseconds(1);
    own_ = std::make_unique<Writer>(std::move(database), 0, std::move(options));
  }

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

  // What the writers' threads use outlives them.
  std::promise<void> released_, third_;
  std::atomic<bool> hold_ = false;
  std::atomic<int> ticks_ = 0;
  std::vector<std::string> ran_;  // on the writer's thread; read after Settle
  StoredRuns runs_;
  std::unique_ptr<Writer> own_;
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
  Own([this](Database&, bool) {
    return LogCare::Verdict{.look_again = true, .hold_points = hold_};
  });
  Submit("points 1", {.bulk = true});
  Settle();
  hold_ = true;
  Settle();  // the verdict that comes after it holds for what follows
  Settle();
  Submit("points 2", {.bulk = true});
  Submit("state 1", {});
  Submit("points 3", {.bulk = true});
  Submit("state 2", {});
  Settle();
  EXPECT_THAT(ran_, ElementsAre("points 1", "state 1", "state 2"));
  hold_ = false;
  Settle();
  Settle();
  EXPECT_THAT(ran_, ElementsAre("points 1", "state 1", "state 2", "points 2", "points 3"));
}

TEST_F(WriterTest, BulkAlreadyInTheQueueIsHeldToo) {
  Own([this](Database&, bool) {
    return LogCare::Verdict{.look_again = true, .hold_points = hold_};
  });
  Occupy();
  hold_ = true;
  // More than one commit takes: the second one finds them held.
  for (int i = 0; i < 3; ++i) Submit("points", {.rows = 4096, .bulk = true});
  Release();
  Settle();
  Settle();
  EXPECT_THAT(ran_, ElementsAre());
}

TEST_F(WriterTest, StoppingTellsWhatIsHeld) {
  Own([](Database&, bool) { return LogCare::Verdict{.look_again = true, .hold_points = true}; });
  Settle();
  absl::Status told;
  writer().Submit([](WriteContext&) { return absl::OkStatus(); },
                  [&told](const absl::Status& status) { told = status; }, {.bulk = true});
  writer().Stop();
  EXPECT_EQ(told.code(), absl::StatusCode::kCancelled);
}

TEST_F(WriterTest, CareIsTakenWithoutWorkAsLongAsItIsWanted) {
  Own([this](Database&, bool tick) {
    if (tick && ++ticks_ == 3) third_.set_value();
    return LogCare::Verdict{.look_again = ticks_ < 3};
  });
  third_.get_future().wait();
  Settle();
  EXPECT_EQ(ticks_, 3);
}

}  // namespace
}  // namespace normlab::storage
