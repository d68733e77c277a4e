#include "server/app/problems.h"

#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/app/run_watch.h"
#include "server/storage/runs.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::app {
namespace {

using fakes::StoredRuns;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr storage::LogLimits kSmall = {
    .checkpoint = 32 << 10, .truncate = 64 << 10, .name = 128 << 10, .hold = 1 << 20};

// A store whose log is soon too large, when somebody reads for long.
class ProblemsTest : public ::testing::Test {
 protected:
  ProblemsTest()
      : runs_(kSmall, std::chrono::milliseconds(2)),
        problems_(runs_.store(), {runs_.directory(), std::chrono::milliseconds(2)}) {}

  void Pin() {
    std::promise<void> reading;
    reader_ = std::thread([this, &reading] {
      EXPECT_TRUE(runs_.store()
                      .Read([&](storage::Database& database) {
                        const auto sequence = storage::ReadSequence(database);
                        reading.set_value();
                        released_.get_future().wait();
                        return sequence.status();
                      })
                      .ok());
    });
    reading.get_future().wait();
    runs_.clock().Advance(std::chrono::seconds(2));
    while (!runs_.store().log_state().pinned) runs_.AddRun();
  }
  void Release() {
    released_.set_value();
    reader_.join();
  }
  std::unique_ptr<Watch> MakeWatch() {
    RunWatch::Options options;
    options.lobby = true;
    return problems_.Tell(std::make_unique<RunWatch>(runs_.store(), runs_.hub(), options));
  }
  // The next notice's problems, waited for.
  static std::vector<std::string> NextNotice(Watch& watch) {
    // A bell may ring while nothing is waited for, and more than once.
    struct Bell {
      Mutex mutex;
      CondVar rung;
      bool ringing ABSL_GUARDED_BY(mutex) = true;
    };
    const auto bell = std::make_shared<Bell>();
    watch.OnReady([bell] {
      MutexLock lock(bell->mutex);
      bell->ringing = true;
      bell->rung.NotifyAll();
    });
    while (true) {
      {
        MutexLock lock(bell->mutex);
        while (!bell->ringing) bell->rung.Wait(bell->mutex);
        bell->ringing = false;
      }
      for (auto events = watch.Next(); events.ok() && !events->empty(); events = watch.Next()) {
        for (const WatchedEvent& event : *events) {
          if (!event.event->message().has_notice()) continue;
          EXPECT_EQ(event.resume_token, "");
          watch.OnReady(nullptr);
          const auto& problems = event.event->message().notice().problems();
          return {problems.begin(), problems.end()};
        }
      }
    }
  }

  StoredRuns runs_;
  Problems problems_;
  std::promise<void> released_;
  std::thread reader_;
};

TEST_F(ProblemsTest, WatchersAreToldWhenSomethingIsWrongAndWhenItIsOver) {
  const std::unique_ptr<Watch> early = MakeWatch();
  for (auto events = early->Next(); !events->empty(); events = early->Next()) {
    for (const WatchedEvent& event : *events) EXPECT_FALSE(event.event->message().has_notice());
  }
  EXPECT_THAT(problems_.Current(), IsEmpty());
  Pin();
  const auto sentence =
      AllOf(HasSubstr("a read of this server (problems_test.cc:"), HasSubstr("ends by itself"));
  EXPECT_THAT(NextNotice(*early), ElementsAre(sentence));
  const std::unique_ptr<Watch> late = MakeWatch();
  EXPECT_THAT(NextNotice(*late), ElementsAre(sentence)) << "to one who comes later";
  EXPECT_THAT(problems_.Current(), ElementsAre(sentence));
  Release();
  EXPECT_THAT(NextNotice(*early), IsEmpty());
  EXPECT_THAT(NextNotice(*late), IsEmpty());
  EXPECT_THAT(problems_.Current(), IsEmpty());
}

TEST_F(ProblemsTest, AWriteThatFailedIsAProblemUntilOneWorks) {
  std::promise<void> told;
  std::atomic<bool> once = false;
  const int64_t bell = problems_.Subscribe([&] {
    if (!once.exchange(true)) told.set_value();
  });
  std::future<void> is_told = told.get_future();
  // It is tried again at once, so it must fail until somebody has seen it.
  while (is_told.wait_for(std::chrono::milliseconds(0)) != std::future_status::ready) {
    EXPECT_FALSE(runs_.store()
                     .writer()
                     .Write([](storage::WriteContext&) {
                       return absl::ResourceExhaustedError("database or disk is full");
                     })
                     .ok());
  }
  problems_.Unsubscribe(bell);
  EXPECT_FALSE(problems_.Current().empty()) << "not over after the first write that works";
  runs_.clock().Advance(std::chrono::seconds(6));
  while (!problems_.Current().empty()) std::this_thread::yield();
  EXPECT_TRUE(runs_.store().writer().health().ok()) << "a write was tried";
}

}  // namespace
}  // namespace normlab::app
