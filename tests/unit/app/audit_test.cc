// What the dispatcher notes of what people ask of it.
#include "server/storage/audit.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/app/dispatcher_fixture.h"

namespace normlab::app {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using v1::Run;

class DispatcherAuditTest : public DispatcherTest {
 protected:
  // "ada cancel queued -> cancelled", oldest first.
  std::vector<std::string> Lines() {
    std::vector<std::string> lines;
    EXPECT_TRUE(runs_.store()
                    .Read([&](storage::Database& database) {
                      auto read = storage::ReadAudit(database, {});
                      if (!read.ok()) return read.status();
                      for (auto event = read->rbegin(); event != read->rend(); ++event) {
                        lines.push_back(event->user() + " " + event->action() + " " +
                                        event->detail());
                      }
                      return absl::OkStatus();
                    })
                    .ok());
    return lines;
  }
  absl::Status Execute(const std::string& sql) {
    return runs_.store().writer().Write(
        [&](storage::WriteContext& context) { return context.database.Execute(sql); });
  }
};

TEST_F(DispatcherAuditTest, EveryRequestThatChangesSomethingIsALine) {
  Start(0);
  const std::string run = runs_.AddRun();
  ASSERT_TRUE(dispatcher_->Pause(run, "ada").ok());
  ASSERT_TRUE(dispatcher_->Pause(run, "ada").ok());  // changes nothing
  ASSERT_TRUE(dispatcher_->Resume(run, "ada").ok());
  ASSERT_TRUE(dispatcher_->Cancel(run, "eve").ok());
  EXPECT_FALSE(dispatcher_->Cancel(run, "eve").ok());
  ASSERT_TRUE(dispatcher_->Retry(run, "ada", /*from_start=*/true).ok());
  EXPECT_THAT(Lines(), ElementsAre("ada pause queued -> paused", "ada resume paused -> queued",
                                   "eve cancel queued -> cancelled",
                                   "ada retry cancelled -> queued, from its beginning"));
}

TEST_F(DispatcherAuditTest, WhatTheServerItselfDoesIsNoLineButWhatItCancelsIs) {
  Start(1);
  const std::string run = runs_.AddRun();
  dispatcher_->Wake();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  ASSERT_TRUE(Attach(launch).ok());
  WaitForState(run, Run::STATE_RUNNING);
  EXPECT_THAT(Lines(), IsEmpty());
  ASSERT_TRUE(dispatcher_->Cancel(run, domain::Actor()).ok());
  EXPECT_THAT(Lines(), ElementsAre(" cancel running -> cancelling"));
  executor_->Exit(launch.key, Signal(15));
  WaitForState(run, Run::STATE_CANCELLED);
  EXPECT_EQ(Lines().size(), 1u);
}

TEST_F(DispatcherAuditTest, NoChangeWithoutItsLine) {
  Start(0);
  const std::string run = runs_.AddRun();
  ASSERT_TRUE(Execute("CREATE TRIGGER no_room BEFORE INSERT ON audit "
                      "BEGIN SELECT RAISE(ABORT, 'no room'); END")
                  .ok());
  EXPECT_FALSE(dispatcher_->Cancel(run, "ada").ok());
  EXPECT_EQ(runs_.Read(run).state(), Run::STATE_QUEUED);
  ASSERT_TRUE(Execute("DROP TRIGGER no_room").ok());
  ASSERT_TRUE(dispatcher_->Cancel(run, "ada").ok());
  EXPECT_EQ(Lines().size(), 1u);
}

// The line was written and then the commit fails: neither is there afterwards.
TEST_F(DispatcherAuditTest, NoLineWithoutItsChange) {
  Start(0);
  const std::string run = runs_.AddRun();
  ASSERT_TRUE(Execute("CREATE TABLE parents (id INTEGER PRIMARY KEY);"
                      "CREATE TABLE orphans (parent INTEGER REFERENCES parents (id) "
                      "DEFERRABLE INITIALLY DEFERRED);"
                      "CREATE TRIGGER orphan AFTER INSERT ON audit "
                      "BEGIN INSERT INTO orphans VALUES (1); END")
                  .ok());
  EXPECT_FALSE(dispatcher_->Cancel(run, "ada").ok());
  EXPECT_EQ(runs_.Read(run).state(), Run::STATE_QUEUED);
  EXPECT_THAT(Lines(), IsEmpty());
}

}  // namespace
}  // namespace normlab::app
