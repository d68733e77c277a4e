// Who may change whose runs: principals from the users table, asked through the api.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "server/app/server_api.h"
#include "tests/unit/app/dispatcher_fixture.h"

namespace normlab::app {
namespace {

using ::testing::HasSubstr;

class RunOwnersTest : public DispatcherTest {
 protected:
  RunOwnersTest() {
    AddUser("owner-of-runs", "member");
    AddUser("colleague", "member");
    AddUser("guest", "viewer");
    AddUser("chief", "admin");
    EXPECT_TRUE(users_.Load(runs_.directory() / "owner-token").ok());
    Start(/*slots=*/0);  // nothing leaves the queue by itself
    api_ = std::make_unique<ServerApi>(ServerApi::Parts{.store = runs_.store(),
                                                        .hub = runs_.hub(),
                                                        .dispatcher = *dispatcher_,
                                                        .devices = *devices_,
                                                        .files = files_,
                                                        .sweep = sweep_,
                                                        .early_stopper = early_stopper_,
                                                        .users = users_,
                                                        .progress = progress_,
                                                        .pool = pool_,
                                                        .reads = pool_,
                                                        .clock = runs_.clock(),
                                                        .limits = {},
                                                        .problems = problems_,
                                                        .storage_tasks = storage_tasks_,
                                                        .data_dir = runs_.directory()});
  }
  ~RunOwnersTest() override {
    dispatcher_->Stop();
    pool_.Stop();
  }

  // Its token is its name.
  void AddUser(const std::string& name, const std::string& role) {
    const absl::Status added =
        runs_.store().writer().Write([&](storage::WriteContext& context) -> absl::Status {
          storage::Statement user = context.database.Prepared(
              "INSERT INTO users (name, role, create_time) VALUES (?1, ?2, 0)");
          user.Bind(1, name);
          user.Bind(2, role);
          if (absl::Status status = user.Run(); !status.ok()) return status;
          storage::Statement token = context.database.Prepared(
              "INSERT INTO tokens (sha256, user_id, purpose, create_time) "
              "SELECT ?1, id, 'browser', 0 FROM users WHERE name = ?2");
          token.Bind(1, Sha256Hex(name));
          token.Bind(2, name);
          return token.Run();
        });
    EXPECT_TRUE(added.ok()) << added;
  }
  Principal As(const std::string& user) {
    const absl::StatusOr<Principal> principal = api_->Authenticate(user, "unix socket");
    EXPECT_TRUE(principal.ok()) << principal.status();
    return principal.value_or(Principal{});
  }

  // A run of owner-of-runs.
  std::string AddOwnedRun(v1::Run::State state) {
    v1::Run run = runs_.MakeRun();
    run.set_user("owner-of-runs");
    EXPECT_TRUE(
        runs_.store()
            .writer()
            .Write([&](storage::WriteContext& context) { return storage::InsertRun(context, run); })
            .ok());
    if (state != v1::Run::STATE_QUEUED) runs_.SetState(run.id(), state);
    return run.id();
  }
  // What a change could have changed; empty for a run that is gone.
  std::string Look(const std::string& id) {
    v1::GetRunRequest get;
    get.set_id(id);
    absl::StatusOr<v1::Run> run = api_->GetRun(As("guest"), get);
    if (!run.ok()) return "";
    run->clear_wait_reason();  // the dispatcher's
    return run->SerializeAsString();
  }

  Users users_{runs_.store(), runs_.clock()};
  GarbageSweep sweep_{runs_.store()};
  EarlyStopper early_stopper_{runs_.store(), [](const std::string&, const std::string&) {
                                return absl::UnimplementedError("nothing is stopped here");
                              }};
  ProgressBoard progress_;
  Pool pool_{1};
  Problems problems_{runs_.store(), {runs_.directory()}};
  StorageTasks storage_tasks_{runs_.store(), runs_.directory() / "copies"};
  std::unique_ptr<ServerApi> api_;
};

struct Change {
  const char* name;
  v1::Run::State from;  // in which it would be done
  std::function<absl::Status(Api&, const Principal&, const std::string& run)> call;
};

template <typename Request, typename Method>
auto Call(Method method) {
  return [method](Api& api, const Principal& who, const std::string& run) -> absl::Status {
    Request request;
    request.set_id(run);
    return (api.*method)(who, request).status();
  };
}

const std::vector<Change>& Changes() {
  static const auto* changes = new std::vector<Change>{
      {"update", v1::Run::STATE_QUEUED,
       [](Api& api, const Principal& who, const std::string& run) {
         v1::UpdateRunRequest request;
         request.mutable_run()->set_id(run);
         request.mutable_run()->set_display_name("another name");
         return api.UpdateRun(who, request).status();
       }},
      {"priority", v1::Run::STATE_QUEUED,
       [](Api& api, const Principal& who, const std::string& run) {
         v1::UpdateRunRequest request;
         request.mutable_run()->set_id(run);
         request.mutable_run()->set_priority("low");
         return api.UpdateRun(who, request).status();
       }},
      {"hold", v1::Run::STATE_QUEUED, Call<v1::HoldRunRequest>(&Api::HoldRun)},
      {"cancel", v1::Run::STATE_QUEUED, Call<v1::CancelRunRequest>(&Api::CancelRun)},
      {"pause", v1::Run::STATE_QUEUED, Call<v1::PauseRunRequest>(&Api::PauseRun)},
      {"resume", v1::Run::STATE_PAUSED, Call<v1::ResumeRunRequest>(&Api::ResumeRun)},
      {"retry", v1::Run::STATE_CANCELLED, Call<v1::RetryRunRequest>(&Api::RetryRun)},
      {"delete", v1::Run::STATE_CANCELLED,
       [](Api& api, const Principal& who, const std::string& run) {
         v1::DeleteRunRequest request;
         request.set_id(run);
         return api.DeleteRun(who, request);
       }},
  };
  return *changes;
}

TEST_F(RunOwnersTest, NeitherAnotherMemberNorAViewerChangesARun) {
  for (const Change& change : Changes()) {
    for (const char* user : {"colleague", "guest"}) {
      const std::string run = AddOwnedRun(change.from);
      const std::string before = Look(run);
      const absl::Status status = change.call(*api_, As(user), run);
      EXPECT_TRUE(absl::IsPermissionDenied(status)) << change.name << " by " << user << status;
      EXPECT_THAT(status.message(),
                  HasSubstr(user == std::string("guest") ? "guest is a viewer and may only look"
                                                         : "belongs to owner-of-runs"));
      EXPECT_EQ(Look(run), before) << change.name << " by " << user;
    }
  }
}

TEST_F(RunOwnersTest, TheOwnerAndAnAdminDo) {
  for (const Change& change : Changes()) {
    for (const char* user : {"owner-of-runs", "chief"}) {
      const std::string run = AddOwnedRun(change.from);
      const std::string before = Look(run);
      const absl::Status status = change.call(*api_, As(user), run);
      EXPECT_TRUE(status.ok()) << change.name << " by " << user << status;
      EXPECT_NE(Look(run), before) << change.name << " by " << user;
    }
  }
}

TEST_F(RunOwnersTest, OnlyTheOwnerOrAnAdminMovesOrReleasesARun) {
  const std::string run = AddOwnedRun(v1::Run::STATE_QUEUED);
  v1::MoveRunRequest move;
  move.set_id(run);
  move.set_first(true);
  v1::ReleaseRunRequest release;
  release.set_id(run);
  for (const char* user : {"colleague", "guest"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(api_->MoveRun(As(user), move).status()));
    EXPECT_TRUE(absl::IsPermissionDenied(api_->ReleaseRun(As(user), release).status()));
  }
  for (const char* user : {"owner-of-runs", "chief"}) {
    EXPECT_TRUE(api_->MoveRun(As(user), move).ok());
    EXPECT_TRUE(api_->ReleaseRun(As(user), release).ok());
  }
}

TEST_F(RunOwnersTest, AMemberGivesLowOrNormalAndAnAdminHigh) {
  const std::string run = AddOwnedRun(v1::Run::STATE_QUEUED);
  v1::UpdateRunRequest update;
  update.mutable_run()->set_id(run);
  update.mutable_run()->set_priority("high");
  const absl::Status high = api_->UpdateRun(As("owner-of-runs"), update).status();
  EXPECT_TRUE(absl::IsPermissionDenied(high));
  EXPECT_THAT(high.message(), HasSubstr("use normal or low"));
  EXPECT_EQ(api_->UpdateRun(As("chief"), update)->priority(), "high");
}

TEST_F(RunOwnersTest, OnlyAnAdminMeasuresTheRunOfAnother) {
  const std::string run = AddOwnedRun(v1::Run::STATE_QUEUED);
  v1::ProbeRunRequest request;
  request.set_id(run);
  EXPECT_TRUE(absl::IsPermissionDenied(api_->ProbeRun(As("colleague"), request).status()));
  // It does not train, which is said to those who may ask.
  EXPECT_TRUE(absl::IsFailedPrecondition(api_->ProbeRun(As("owner-of-runs"), request).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(api_->ProbeRun(As("chief"), request).status()));
}

TEST_F(RunOwnersTest, PruningKeepsTheRunsOfOthers) {
  const std::string run = AddOwnedRun(v1::Run::STATE_CANCELLED);
  v1::PruneRunsRequest request;
  request.set_filter("state = cancelled");
  const auto of_another = api_->PruneRuns(As("colleague"), request);
  ASSERT_TRUE(of_another.ok()) << of_another.status();
  EXPECT_EQ(of_another->runs(), 0);
  EXPECT_EQ(of_another->kept(), 1);
  EXPECT_NE(Look(run), "");
  EXPECT_TRUE(absl::IsPermissionDenied(api_->PruneRuns(As("guest"), request).status()));
  const auto of_an_admin = api_->PruneRuns(As("chief"), request);
  ASSERT_TRUE(of_an_admin.ok()) << of_an_admin.status();
  EXPECT_EQ(of_an_admin->runs(), 1);
  EXPECT_EQ(Look(run), "");
}

TEST_F(RunOwnersTest, AViewerSubmitsNothingAndAStrangerIsNobody) {
  EXPECT_TRUE(absl::IsPermissionDenied(api_->CreateRun(As("guest"), {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(api_->CreateRun(As("colleague"), {}).status()));
  EXPECT_TRUE(absl::IsUnauthenticated(api_->Authenticate("nobody", "").status()));
}

}  // namespace
}  // namespace normlab::app
