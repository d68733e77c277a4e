#include "server/storage/audit.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/storage/run_deletion.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

AuditQuery Ask(const std::string& run, const std::string& user = "",
               const std::string& reader = "") {
  AuditQuery query;
  query.run = run;
  query.user = user;
  query.reader = reader;
  return query;
}

class AuditTest : public ::testing::Test {
 protected:
  void Note(const domain::Actor& who, const AuditLine& line) {
    ASSERT_TRUE(runs_.store()
                    .writer()
                    .Write([&](WriteContext& context) { return WriteAudit(context, who, line); })
                    .ok());
  }
  std::vector<v1::AuditEvent> Read(const AuditQuery& query = {}) {
    std::vector<v1::AuditEvent> events;
    EXPECT_TRUE(runs_.store()
                    .Read([&](Database& database) {
                      auto read = ReadAudit(database, query);
                      if (read.ok()) events = *std::move(read);
                      return read.status();
                    })
                    .ok());
    return events;
  }
  std::vector<std::string> Actions(const AuditQuery& query = {}) {
    std::vector<std::string> actions;
    for (const v1::AuditEvent& event : Read(query)) actions.push_back(event.action());
    return actions;
  }

  fakes::StoredRuns runs_;
};

TEST_F(AuditTest, ALineSaysWhoWhenFromWhereAndWhat) {
  const std::string run = runs_.AddRun();
  Note({"ada", "ipv4:10.0.0.7:4711"}, {"cancel", run, "cpu:0", "running -> cancelling"});
  const auto events = Read();
  ASSERT_EQ(events.size(), 1u);
  const v1::AuditEvent& event = events[0];
  EXPECT_EQ(event.user(), "ada");
  EXPECT_EQ(event.origin(), "ipv4:10.0.0.7:4711");
  EXPECT_EQ(event.action(), "cancel");
  EXPECT_EQ(event.run(), run);
  EXPECT_EQ(event.subject(), "cpu:0");
  EXPECT_EQ(event.detail(), "running -> cancelling");
  EXPECT_EQ(event.time().seconds(), runs_.clock().WallMicros() / 1'000'000);
  EXPECT_GT(event.id(), 0);
}

TEST_F(AuditTest, PagesGoBackByIdAndMeetNoLineTwice) {
  for (int i = 0; i < 5; ++i) Note("ada", {std::to_string(i)});
  AuditQuery query;
  query.limit = 2;
  EXPECT_THAT(Actions(query), ElementsAre("4", "3"));
  query.before = Read(query).back().id();
  Note("ada", {"later"});
  EXPECT_THAT(Actions(query), ElementsAre("2", "1"));
}

TEST_F(AuditTest, QuestionsByRunByUserAndByReader) {
  const std::string run = runs_.AddRun();  // lab1's
  Note("eve", {"by an admin", run});
  Note("lab1", {"own"});
  Note("bob", {"another's"});
  EXPECT_THAT(Actions(Ask(run)), ElementsAre("by an admin"));
  EXPECT_THAT(Actions(Ask("", "bob")), ElementsAre("another's"));
  EXPECT_THAT(Actions(Ask("", "", "lab1")), ElementsAre("own", "by an admin"));
  EXPECT_THAT(Actions(Ask("", "bob", "lab1")), IsEmpty());
}

TEST_F(AuditTest, ADeletedRunKeepsItsLinesAndItsReader) {
  const std::string run = runs_.AddRun();
  runs_.SetState(run, v1::Run::STATE_CANCELLED);
  ASSERT_TRUE(runs_.store()
                  .writer()
                  .Write([&](WriteContext& context) -> absl::Status {
                    auto noted = WriteAudit(context, "eve", {"delete", run});
                    return noted.ok() ? DeleteRun(context, run) : noted;
                  })
                  .ok());
  EXPECT_THAT(Actions(Ask(run, "", "lab1")), ElementsAre("delete"));
}

TEST_F(AuditTest, LongDetailsAreCutBetweenCharacters) {
  std::string text(kLongestAuditDetail - 1, 'a');
  Note("ada", {"update", "", "", text + "éé"});
  const std::string stored = Read()[0].detail();
  EXPECT_EQ(stored, text + "…");
  EXPECT_EQ(ChangeText("notes", "a", std::string(100, 'b')),
            "notes: \"a\" -> \"" + std::string(60, 'b') + "…\"");
}

}  // namespace
}  // namespace normlab::storage
