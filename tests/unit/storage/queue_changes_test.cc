#include "server/storage/queue_changes.h"

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/domain/priority.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class QueueChangesTest : public ::testing::Test {
 protected:
  std::string Add(const std::string& user = "lab1", const std::string& priority = "normal") {
    v1::Run run = runs_.MakeRun();
    run.set_user(user);
    run.set_priority(priority);
    EXPECT_TRUE(Write([&](WriteContext& context) { return InsertRun(context, run); }).ok());
    return run.id();
  }
  absl::Status Write(const std::function<absl::Status(WriteContext&)>& work) {
    return runs_.store().writer().Write(work);
  }
  absl::Status Change(const std::string& run, const QueueChange& change) {
    return Write([&](WriteContext& context) { return ChangeQueued(context, run, change); });
  }
  absl::Status Move(const std::string& run, Place place) {
    return Write([&](WriteContext& context) { return MoveQueued(context, run, place); });
  }
  absl::Status Limit(const std::string& user, int64_t more) {
    return runs_.store().Read(
        [&](Database& database) { return CheckQueueLimit(database, user, more); });
  }
  // A user's queued runs in the order in which they are to start.
  std::vector<std::string> Order(const std::string& user = "lab1") {
    std::vector<std::string> order;
    EXPECT_TRUE(runs_.store()
                    .Read([&](Database& database) {
                      Statement select = database.Prepared(
                          "SELECT id FROM runs WHERE state = 1 AND user_name = ?1 "
                          "ORDER BY priority DESC, queue_rank, id");
                      select.Bind(1, user);
                      while (select.Step()) order.push_back(select.Text(0));
                      return select.status();
                    })
                    .ok());
    return order;
  }

  fakes::StoredRuns runs_;
};

using Kind = Place::Kind;

TEST_F(QueueChangesTest, RunsGoWhereTheyAreMovedAndNewOnesComeLast) {
  const std::string a = Add(), b = Add(), c = Add();
  ASSERT_TRUE(Move(c, {Kind::kFirst}).ok());
  EXPECT_THAT(Order(), ElementsAre(c, a, b));
  ASSERT_TRUE(Move(c, {Kind::kLast}).ok());
  EXPECT_THAT(Order(), ElementsAre(a, b, c));
  ASSERT_TRUE(Move(a, {Kind::kLast}).ok());
  const std::string d = Add();
  EXPECT_THAT(Order(), ElementsAre(b, c, a, d));
  ASSERT_TRUE(Move(d, {Kind::kBefore, c}).ok());
  EXPECT_THAT(Order(), ElementsAre(b, d, c, a));
  ASSERT_TRUE(Move(b, {Kind::kBehind, c}).ok());
  EXPECT_THAT(Order(), ElementsAre(d, c, b, a));
}

TEST_F(QueueChangesTest, AnyRowOfMovesIsThatOfAList) {
  std::mt19937 random(7);
  std::vector<std::string> list;
  for (int i = 0; i < 12; ++i) list.push_back(Add());
  const std::string other = Add("lab2");
  for (int i = 0; i < 400; ++i) {
    if (i % 40 == 39) list.push_back(Add());
    const std::string run = list[random() % list.size()];
    const auto kind = static_cast<Kind>(random() % 4);
    Place place{kind, list[random() % list.size()]};
    if (place.other == run) continue;
    ASSERT_TRUE(Move(run, place).ok());
    std::erase(list, run);
    auto where = kind == Kind::kFirst  ? list.begin()
                 : kind == Kind::kLast ? list.end()
                                       : std::ranges::find(list, place.other);
    if (kind == Kind::kBehind) ++where;
    list.insert(where, run);
    ASSERT_EQ(Order(), list) << "after move " << i;
  }
  EXPECT_THAT(Order("lab2"), ElementsAre(other));
}

TEST_F(QueueChangesTest, NoMoveGoesPastOtherPeopleOrClasses) {
  const std::string mine = Add(), theirs = Add("lab2"), low = Add("lab1", "low");
  EXPECT_THAT(Move(mine, {Kind::kBefore, theirs}).message(), HasSubstr("belongs to lab2"));
  EXPECT_THAT(Move(mine, {Kind::kBehind, low}).message(), HasSubstr("priority low"));
  EXPECT_THAT(Move(mine, {Kind::kBehind, mine}).message(), HasSubstr("itself"));
  ASSERT_TRUE(Move(low, {Kind::kFirst}).ok());
  EXPECT_THAT(Order(), ElementsAre(mine, low));
}

TEST_F(QueueChangesTest, OnlyQueuedRunsHaveAPlace) {
  const std::string run = Add(), other = Add();
  runs_.SetState(run, v1::Run::STATE_STARTING);
  QueueChange change;
  change.held = true;
  for (const absl::Status& status :
       {Change(run, change), Move(run, {Kind::kFirst}), Move(other, {Kind::kBefore, run})}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr("is starting; only a queued run"));
  }
  EXPECT_EQ(Change(runs_.MakeRun().id(), change).code(), absl::StatusCode::kNotFound);
}

TEST_F(QueueChangesTest, HeldRunsSayByWhomAndWatchersSeeIt) {
  const std::string run = Add();
  runs_.published().clear();
  QueueChange hold;
  hold.held = true;
  hold.wait_reason = "held by lab1";
  ASSERT_TRUE(Change(run, hold).ok());
  EXPECT_TRUE(runs_.Read(run).held());
  EXPECT_EQ(runs_.Read(run).wait_reason(), "held by lab1");
  ASSERT_EQ(runs_.published().size(), 1U);
  hold.wait_reason = "held by somebody else";
  ASSERT_TRUE(Change(run, hold).ok());
  EXPECT_EQ(runs_.Read(run).wait_reason(), "held by lab1");
  QueueChange release;
  release.held = false;
  ASSERT_TRUE(Change(run, release).ok());
  EXPECT_FALSE(runs_.Read(run).held());
  EXPECT_EQ(runs_.Read(run).wait_reason(), "");
}

TEST_F(QueueChangesTest, InANewClassARunStandsByItsAge) {
  const std::string a = Add(), b = Add(), c = Add("lab1", "low"), d = Add("lab1", "low");
  ASSERT_TRUE(Move(b, {Kind::kFirst}).ok());
  QueueChange low;
  low.priority = -1;
  ASSERT_TRUE(Change(b, low).ok());
  EXPECT_EQ(runs_.Read(b).priority(), "low");
  EXPECT_THAT(Order(), ElementsAre(a, b, c, d));
}

TEST_F(QueueChangesTest, AUserMayOnlyQueueSoMany) {
  Add();
  Add();
  Add("lab2");
  EXPECT_TRUE(Limit("lab1", 1'000'000).ok());
  ASSERT_TRUE(Write([](WriteContext& context) {
                return context.database
                    .Prepared(
                        "INSERT INTO users (name, role, create_time, max_queued) "
                        "VALUES ('lab1', 'member', 0, 3)")
                    .Run();
              }).ok());
  EXPECT_TRUE(Limit("lab1", 1).ok());
  const absl::Status refused = Limit("lab1", 2);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(),
              HasSubstr("lab1 has 2 runs in the queue and wants 2 more; the limit is 3"));
}

}  // namespace
}  // namespace normlab::storage
