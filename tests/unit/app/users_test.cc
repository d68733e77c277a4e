#include "server/app/users.h"

#include <sys/stat.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/app/failed_logins.h"
#include "server/app/guarded_watch.h"
#include "server/base/files.h"
#include "server/base/ids.h"
#include "server/storage/audit.h"
#include "server/storage/users.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class UsersTest : public ::testing::Test {
 protected:
  UsersTest() { Load(); }

  void Load() {
    users_ = std::make_unique<Users>(runs_.store(), runs_.clock());
    ASSERT_TRUE(users_->Load(token_file()).ok());
    owner_ = users_->Authenticate(users_->owner_token()).value();
    owner_.origin = "unix socket";
  }
  std::filesystem::path token_file() const { return runs_.directory() / "owner-token"; }

  // Makes a user and returns the token.
  std::string Add(const std::string& name, const std::string& role = "member") {
    v1::User user;
    user.set_name(name);
    user.set_role(role);
    const auto made = users_->Create(owner_, user);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? made->token() : "";
  }
  bool Counts(const std::string& token) { return users_->Authenticate(token).ok(); }
  v1::User Stored(const std::string& name) {
    v1::User user;
    EXPECT_TRUE(runs_.store()
                    .Read([&](storage::Database& database) {
                      auto read = storage::ReadUser(database, name);
                      if (read.ok()) user = *std::move(read);
                      return read.status();
                    })
                    .ok());
    return user;
  }
  std::vector<v1::AuditEvent> Audit() {
    std::vector<v1::AuditEvent> events;
    EXPECT_TRUE(runs_.store()
                    .Read([&](storage::Database& database) {
                      auto read = storage::ReadAudit(database, {});
                      if (read.ok()) events = *std::move(read);
                      return read.status();
                    })
                    .ok());
    return events;
  }
  // Everything the database has, as text.
  std::string DatabaseBytes() {
    return ReadFile(runs_.directory() / "normlab.db").value() +
           ReadFile(runs_.directory() / "normlab.db-wal").value();
  }

  fakes::StoredRuns runs_;
  std::unique_ptr<Users> users_;
  Principal owner_;
};

TEST_F(UsersTest, ATokenStandsForItsUserAndOnlyItsDigestIsStored) {
  const std::string token = Add("ada");
  EXPECT_EQ(token.size(), 64u);
  const auto who = users_->Authenticate(token);
  ASSERT_TRUE(who.ok());
  EXPECT_EQ(who->user, "ada");
  EXPECT_EQ(who->role, "member");
  EXPECT_FALSE(Counts(token + "0"));
  EXPECT_FALSE(Counts(""));
  EXPECT_THAT(DatabaseBytes(), ::testing::Not(HasSubstr(token)));
  EXPECT_THAT(DatabaseBytes(), HasSubstr(Sha256Hex(token)));
}

TEST_F(UsersTest, UsersAndTokensOutliveTheServer) {
  const std::string ada = Add("ada", "viewer"), bob = Add("bob");
  ASSERT_TRUE(users_->Remove(owner_, "bob").ok());
  users_.reset();
  runs_.Open();
  Load();
  EXPECT_EQ(users_->Authenticate(ada)->role, "viewer");
  EXPECT_FALSE(Counts(bob));
}

TEST_F(UsersTest, ANewRoleCountsFromTheNextCall) {
  const std::string token = Add("ada");
  ASSERT_TRUE(users_->Update(owner_, "ada", [](v1::User& user) { user.set_role("viewer"); }).ok());
  EXPECT_EQ(users_->Authenticate(token)->role, "viewer");
}

TEST_F(UsersTest, RotatingEndsTheOldTokenThoseOfBrowsersAndCodes) {
  const std::string token = Add("ada");
  const Principal ada = users_->Authenticate(token).value();
  const auto browser = users_->ExchangeLoginCode(users_->MakeLoginCode(ada).value(), "127.0.0.1:9");
  ASSERT_TRUE(browser.ok());
  EXPECT_EQ(browser->user, "ada");
  EXPECT_TRUE(Counts(browser->token));
  const std::string code = users_->MakeLoginCode(ada).value();
  const auto fresh = users_->Rotate(ada, "ada");
  ASSERT_TRUE(fresh.ok());
  EXPECT_FALSE(Counts(token));
  EXPECT_FALSE(Counts(browser->token));
  EXPECT_TRUE(Counts(*fresh));
  EXPECT_TRUE(absl::IsUnauthenticated(users_->ExchangeLoginCode(code, "").status()));
  // One that was authenticated before is asked again.
  EXPECT_TRUE(absl::IsUnauthenticated(users_->MakeLoginCode(ada).status()));
}

TEST_F(UsersTest, ARemovedUserIsNobodyUntilMadeAgainAndHistoryStays) {
  const std::string token = Add("ada");
  const auto since = Stored("ada").create_time();
  ASSERT_TRUE(users_->Remove(owner_, "ada").ok());
  EXPECT_FALSE(Counts(token));
  EXPECT_TRUE(Stored("ada").removed());
  EXPECT_TRUE(absl::IsNotFound(users_->Remove(owner_, "ada")));
  EXPECT_TRUE(absl::IsNotFound(users_->Rotate(owner_, "ada").status()));
  EXPECT_TRUE(absl::IsNotFound(users_->Update(owner_, "ada", [](v1::User&) {}).status()));
  runs_.clock().Advance(std::chrono::seconds(5));
  const std::string again = Add("ada", "viewer");
  EXPECT_FALSE(Counts(token));
  EXPECT_EQ(users_->Authenticate(again)->role, "viewer");
  EXPECT_FALSE(Stored("ada").removed());
  EXPECT_EQ(Stored("ada").create_time().seconds(), since.seconds());
}

TEST_F(UsersTest, ANameInUseIsRefused) {
  const std::string token = Add("ada");
  v1::User user;
  user.set_name("ada");
  user.set_role("admin");
  EXPECT_TRUE(absl::IsAlreadyExists(users_->Create(owner_, user).status()));
  EXPECT_EQ(users_->Authenticate(token)->role, "member");
}

TEST_F(UsersTest, TheOwnerStaysAnAdmin) {
  const auto demote = [](v1::User& user) { user.set_role("member"); };
  EXPECT_TRUE(absl::IsFailedPrecondition(users_->Remove(owner_, owner_.user)));
  EXPECT_TRUE(absl::IsFailedPrecondition(users_->Update(owner_, owner_.user, demote).status()));
  EXPECT_EQ(users_->Authenticate(users_->owner_token())->role, "admin");
  // Whatever somebody did to the database.
  ASSERT_TRUE(runs_.store()
                  .writer()
                  .Write([&](storage::WriteContext& context) {
                    return context.database.Execute(
                        "UPDATE users SET role = 'viewer', remove_time = 1");
                  })
                  .ok());
  users_.reset();
  Load();
  EXPECT_EQ(owner_.role, "admin");
}

TEST_F(UsersTest, TheOwnersNewTokenIsInTheFile) {
  const std::string before = users_->owner_token();
  int told = 0;
  users_->OnOwnerToken([&] { ++told; });
  const auto token = users_->Rotate(owner_, owner_.user);
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(told, 1);
  EXPECT_EQ(users_->owner_token(), *token);
  EXPECT_EQ(ReadFile(token_file()).value(), *token + "\n");
  struct stat info {};
  ASSERT_EQ(stat(token_file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_FALSE(Counts(before));
  users_.reset();
  runs_.Open();
  Load();
  EXPECT_EQ(users_->owner_token(), *token);
  EXPECT_FALSE(Counts(before));
}

TEST_F(UsersTest, EveryChangeIsInTheAuditAndNoTokenIs) {
  const std::string token = Add("ada");
  ASSERT_TRUE(users_
                  ->Update(owner_, "ada",
                           [](v1::User& user) {
                             user.set_role("viewer");
                             user.mutable_limits()->set_queued(7);
                           })
                  .ok());
  const std::string rotated = users_->Rotate(owner_, "ada").value();
  ASSERT_TRUE(users_->Remove(owner_, "ada").ok());
  std::vector<std::pair<std::string, std::string>> lines;
  for (const v1::AuditEvent& event : Audit()) {
    lines.emplace_back(event.action(), event.detail());
    EXPECT_EQ(event.user(), owner_.user);
    EXPECT_EQ(event.origin(), "unix socket");
    EXPECT_EQ(event.subject(), "ada");
    EXPECT_THAT(event.ShortDebugString(), ::testing::Not(HasSubstr(token)));
    EXPECT_THAT(event.ShortDebugString(), ::testing::Not(HasSubstr(rotated)));
  }
  EXPECT_THAT(lines,
              ElementsAre(Pair("remove user", ""), Pair("rotate token", ""),
                          Pair("update user", "role: member -> viewer; limits.queued: 0 -> 7"),
                          Pair("create user",
                               "member; limits: 0 running, 0 queued, 0 bytes of GPU memory")));
}

TEST_F(UsersTest, AChangeWhoseLineCannotBeWrittenDoesNotHappen) {
  const std::string token = Add("ada");
  const std::string owners = users_->owner_token();
  ASSERT_TRUE(runs_.store()
                  .writer()
                  .Write([&](storage::WriteContext& context) {
                    return context.database.Execute(
                        "CREATE TRIGGER no_room BEFORE INSERT ON audit "
                        "BEGIN SELECT RAISE(ABORT, 'no room'); END");
                  })
                  .ok());
  EXPECT_FALSE(users_->Remove(owner_, "ada").ok());
  EXPECT_FALSE(users_->Rotate(owner_, "ada").ok());
  EXPECT_FALSE(users_->Rotate(owner_, owner_.user).ok());
  EXPECT_FALSE(users_->Update(owner_, "ada", [](v1::User& user) { user.set_role("admin"); }).ok());
  EXPECT_EQ(users_->Authenticate(token)->role, "member");
  EXPECT_FALSE(Stored("ada").removed());
  EXPECT_EQ(ReadFile(token_file()).value(), owners + "\n");
  users_.reset();
  runs_.Open();
  Load();
  EXPECT_EQ(users_->Authenticate(token)->role, "member");
  EXPECT_EQ(users_->owner_token(), owners);
}

// --- watches ---

class SilentWatch : public Watch {
 public:
  absl::StatusOr<std::vector<WatchedEvent>> Next() override { return std::vector<WatchedEvent>(); }
  std::optional<std::vector<WatchedEvent>> NextLive() override {
    return std::vector<WatchedEvent>();
  }
  bool more() const override { return false; }
  bool finished() const override { return false; }
  void OnReady(std::function<void()>) override {}
};

TEST_F(UsersTest, AnIdleWatchIsRungAndEndsWhenItsTokenCountsNoMore) {
  const std::string token = Add("ada"), other = Add("bob");
  GuardedWatch watch(std::make_unique<SilentWatch>(), users_->Authenticate(token)->revocation);
  GuardedWatch others(std::make_unique<SilentWatch>(), users_->Authenticate(other)->revocation);
  int rung = 0, others_rung = 0;
  watch.OnReady([&] { ++rung; });
  others.OnReady([&] { ++others_rung; });
  EXPECT_TRUE(watch.Next().ok());
  ASSERT_TRUE(users_->Remove(owner_, "ada").ok());
  EXPECT_EQ(rung, 1);
  EXPECT_FALSE(watch.NextLive().has_value());
  EXPECT_TRUE(absl::IsUnauthenticated(watch.Next().status()));
  EXPECT_EQ(others_rung, 0);
  EXPECT_TRUE(others.Next().ok());
  // One that waits for its bell only now is rung at once.
  rung = 0;
  watch.OnReady([&] { ++rung; });
  EXPECT_EQ(rung, 1);
}

TEST(FailedLoginsTest, ALineASecondAtMostWhichCountsTheOthers) {
  fakes::FakeClock clock;
  std::vector<std::pair<std::string, int64_t>> lines;
  FailedLogins failed(clock, [&](std::string_view origin, int64_t left_out) {
    lines.emplace_back(origin, left_out);
  });
  for (const char* origin : {"a", "b", "c"}) failed.Note(origin);
  clock.Advance(std::chrono::seconds(1));
  failed.Note("d");
  clock.Advance(std::chrono::seconds(1));
  failed.Note("e");
  EXPECT_THAT(lines, ElementsAre(Pair("a", 0), Pair("d", 2), Pair("e", 0)));
}

}  // namespace
}  // namespace normlab::app
