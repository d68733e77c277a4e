// Who may call what: one table of every method of every service, asked of a real server by a
// viewer, a member for their own and for another's run, an admin, and somebody without a token.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "normlab/v1/device_service.pb.h"
#include "server/app/server_api.h"
#include "server/rpc/rpc_server.h"
#include "server/storage/experiments.h"
#include "tests/unit/app/dispatcher_fixture.h"

namespace normlab::rpc {
namespace {

using google::protobuf::Message;

// What a request is about: a run and an experiment of `owner`.
struct Subject {
  std::string owner;
  std::string run;
  std::string experiment;
  std::string login_code;
};

enum class Who {
  kAnybody,  // also without a token
  kEverybody,
  kMembers,  // and admins
  kOwner,    // the run's, if not a viewer, and admins
  kSelf,     // the user that it is about, whatever they are, and admins
  kAdmins,
};

struct Rule {
  Who who;
  std::function<std::unique_ptr<Message>(const Subject&)> request;
};

template <typename Request>
Rule Of(
    Who who, std::function<void(const Subject&, Request&)> fill = [](const Subject&, Request&) {}) {
  return {who, [fill](const Subject& subject) {
            auto request = std::make_unique<Request>();
            fill(subject, *request);
            return request;
          }};
}
// A request whose field `id` is a run.
template <typename Request>
Rule OfRun(Who who) {
  return Of<Request>(who,
                     [](const Subject& subject, Request& request) { request.set_id(subject.run); });
}

// A new method has no row, and the test fails until it has one.
const std::map<std::string, Rule>& Rules() {
  using S = const Subject&;
  static const std::map<std::string, Rule> rules = {
      {"RunService.CreateRun", Of<v1::CreateRunRequest>(Who::kMembers)},
      {"RunService.GetRun", OfRun<v1::GetRunRequest>(Who::kEverybody)},
      {"RunService.ListRuns", Of<v1::ListRunsRequest>(Who::kEverybody)},
      {"RunService.UpdateRun", Of<v1::UpdateRunRequest>(Who::kOwner,
                                                        [](S s, v1::UpdateRunRequest& r) {
                                                          r.mutable_run()->set_id(s.run);
                                                          r.mutable_run()->set_notes("mine");
                                                        })},
      {"RunService.DeleteRun", OfRun<v1::DeleteRunRequest>(Who::kOwner)},
      // Takes the caller's own runs only.
      {"RunService.PruneRuns",
       Of<v1::PruneRunsRequest>(Who::kMembers,
                                [](S, v1::PruneRunsRequest& r) { r.set_filter("id:*"); })},
      {"RunService.HoldRun", OfRun<v1::HoldRunRequest>(Who::kOwner)},
      {"RunService.ReleaseRun", OfRun<v1::ReleaseRunRequest>(Who::kOwner)},
      {"RunService.MoveRun", Of<v1::MoveRunRequest>(Who::kOwner,
                                                    [](S s, v1::MoveRunRequest& r) {
                                                      r.set_id(s.run);
                                                      r.set_first(true);
                                                    })},
      {"RunService.CancelRun", OfRun<v1::CancelRunRequest>(Who::kOwner)},
      {"RunService.PauseRun", OfRun<v1::PauseRunRequest>(Who::kOwner)},
      {"RunService.ResumeRun", OfRun<v1::ResumeRunRequest>(Who::kOwner)},
      {"RunService.RetryRun", OfRun<v1::RetryRunRequest>(Who::kOwner)},
      {"RunService.ProbeRun", OfRun<v1::ProbeRunRequest>(Who::kOwner)},
      {"RunService.ReadSeries",
       Of<v1::ReadSeriesRequest>(Who::kEverybody,
                                 [](S s, v1::ReadSeriesRequest& r) { r.set_run(s.run); })},
      {"RunService.ReadLog",
       Of<v1::ReadLogRequest>(Who::kEverybody,
                              [](S s, v1::ReadLogRequest& r) { r.set_run(s.run); })},
      {"RunService.ReadPoints",
       Of<v1::ReadPointsRequest>(Who::kEverybody,
                                 [](S s, v1::ReadPointsRequest& r) { r.set_run(s.run); })},
      {"RunService.ReadCheckpoint",
       Of<v1::ReadCheckpointRequest>(Who::kEverybody,
                                     [](S s, v1::ReadCheckpointRequest& r) { r.set_run(s.run); })},
      {"RunService.WatchRuns",
       Of<v1::WatchRunsRequest>(Who::kEverybody,
                                [](S s, v1::WatchRunsRequest& r) { r.add_runs(s.run); })},
      {"ExperimentService.CreateExperiment", Of<v1::CreateExperimentRequest>(Who::kMembers)},
      {"ExperimentService.GetExperiment",
       Of<v1::GetExperimentRequest>(
           Who::kEverybody, [](S s, v1::GetExperimentRequest& r) { r.set_id(s.experiment); })},
      {"ExperimentService.CancelExperiment",
       Of<v1::CancelExperimentRequest>(
           Who::kOwner, [](S s, v1::CancelExperimentRequest& r) { r.set_id(s.experiment); })},
      {"ExperimentService.ListExperiments", Of<v1::ListExperimentsRequest>(Who::kEverybody)},
      {"ExperimentService.ListPresets", Of<v1::ListPresetsRequest>(Who::kEverybody)},
      {"DeviceService.ListDevices", Of<v1::ListDevicesRequest>(Who::kEverybody)},
      {"DeviceService.UpdateDevice", Of<v1::UpdateDeviceRequest>(Who::kAdmins)},
      {"DeviceService.GetQueue", Of<v1::GetQueueRequest>(Who::kEverybody)},
      {"UserService.GetMe", Of<v1::GetMeRequest>(Who::kEverybody)},
      {"UserService.ListUsers", Of<v1::ListUsersRequest>(Who::kEverybody)},
      {"UserService.CreateUser", Of<v1::CreateUserRequest>(Who::kAdmins)},
      {"UserService.UpdateUser", Of<v1::UpdateUserRequest>(Who::kAdmins)},
      {"UserService.DeleteUser",
       Of<v1::DeleteUserRequest>(Who::kAdmins,
                                 [](S s, v1::DeleteUserRequest& r) { r.set_name(s.owner); })},
      {"UserService.RotateToken",
       Of<v1::RotateTokenRequest>(Who::kSelf,
                                  [](S s, v1::RotateTokenRequest& r) { r.set_name(s.owner); })},
      {"UserService.ListAuditEvents", Of<v1::ListAuditEventsRequest>(Who::kEverybody)},
      {"UserService.CreateLoginCode", Of<v1::CreateLoginCodeRequest>(Who::kEverybody)},
      {"UserService.ExchangeLoginCode",
       Of<v1::ExchangeLoginCodeRequest>(
           Who::kAnybody, [](S s, v1::ExchangeLoginCodeRequest& r) { r.set_code(s.login_code); })},
      {"StorageService.GetStorage", Of<v1::GetStorageRequest>(Who::kEverybody)},
      {"StorageService.Backup", Of<v1::BackupRequest>(Who::kAdmins)},
      {"StorageService.CheckStorage", Of<v1::CheckStorageRequest>(Who::kAdmins)},
      {"StorageService.CompactStorage", Of<v1::CompactStorageRequest>(Who::kAdmins)},
  };
  return rules;
}

// Every method of the public API: "RunService.CreateRun".
std::set<std::string> Methods() {
  std::set<std::string> methods;
  const std::filesystem::path root = NORMLAB_PROTO_DIR;
  for (const auto& entry : std::filesystem::directory_iterator(root / "normlab" / "v1")) {
    const std::string name = std::filesystem::relative(entry.path(), root).string();
    if (!name.ends_with(".proto")) continue;
    const auto* file = google::protobuf::DescriptorPool::generated_pool()->FindFileByName(name);
    EXPECT_NE(file, nullptr) << name;
    for (int s = 0; file != nullptr && s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        methods.insert(file->service(s)->name() + "." + file->service(s)->method(m)->name());
      }
    }
  }
  return methods;
}

class PermissionsTest : public app::DispatcherTest {
 protected:
  void SetUp() override {
    Start(0);  // nothing starts
    users_ = std::make_unique<app::Users>(runs_.store(), runs_.clock());
    ASSERT_TRUE(users_->Load(runs_.directory() / "owner-token").ok());
    owner_ = users_->Authenticate(users_->owner_token()).value();
    problems_ =
        std::make_unique<app::Problems>(runs_.store(), app::Problems::Options{runs_.directory()});
    std::filesystem::create_directory(runs_.directory() / "copies");
    tasks_ = std::make_unique<app::StorageTasks>(runs_.store(), runs_.directory() / "copies");
    api_ = std::make_unique<app::ServerApi>(app::ServerApi::Parts{.store = runs_.store(),
                                                                  .hub = runs_.hub(),
                                                                  .dispatcher = *dispatcher_,
                                                                  .devices = *devices_,
                                                                  .files = files_,
                                                                  .sweep = sweep_,
                                                                  .early_stopper = early_stopper_,
                                                                  .users = *users_,
                                                                  .progress = progress_,
                                                                  .pool = pool_,
                                                                  .reads = reads_,
                                                                  .clock = runs_.clock(),
                                                                  .limits = {1, 0},
                                                                  .problems = *problems_,
                                                                  .storage_tasks = *tasks_,
                                                                  .data_dir = runs_.directory()});
    server_ = std::make_unique<RpcServer>(*api_, nullptr, WatchLimits());
    ASSERT_TRUE(server_->Start({"127.0.0.1:0", runs_.directory() / "sock"}).ok());
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
  }
  void TearDown() override {
    tasks_->BreakOff();
    server_->Stop();
    tasks_->Stop();
    dispatcher_->Stop();
    reads_.Stop();
    pool_.Stop();
    runs_.store().writer().Stop();
  }

  // A new user's token.
  std::string Add(const std::string& name, const std::string& role) {
    v1::User user;
    user.set_name(name);
    user.set_role(role);
    const auto made = users_->Create(owner_, user);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? made->token() : "";
  }
  // A run and an experiment of that user.
  Subject SubjectOf(const std::string& user) {
    v1::Run run = runs_.MakeRun();
    run.set_user(user);
    v1::Experiment experiment;
    experiment.set_id(ids_.Next(runs_.clock().WallMicros()));
    experiment.set_user(user);
    EXPECT_TRUE(runs_.store()
                    .writer()
                    .Write([&](storage::WriteContext& context) {
                      absl::Status written = storage::InsertExperiment(context, experiment);
                      return written.ok() ? storage::InsertRun(context, run) : written;
                    })
                    .ok());
    return {user, run.id(), experiment.id(), users_->MakeLoginCode(owner_).value()};
  }

  // The status of a call; OK as soon as there is an answer.
  grpc::Status Call(const std::string& method, const Message& request, const std::string& token) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    grpc::CompletionQueue queue;
    const auto done = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    grpc::GenericStub stub(channel_);
    const std::string service = method.substr(0, method.find('.'));
    const auto stream = stub.PrepareCall(
        &context, "/normlab.v1." + service + "/" + method.substr(service.size() + 1), &queue);
    stream->StartCall(nullptr);
    done();
    const grpc::Slice slice(request.SerializeAsString());
    stream->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
    done();
    grpc::ByteBuffer answer;
    stream->Read(&answer, nullptr);
    const bool answered = done();
    if (answered) context.TryCancel();  // of a stream the first message is enough
    grpc::Status status;
    stream->Finish(&status, nullptr);
    done();
    return answered ? grpc::Status::OK : status;
  }

  UlidGenerator ids_;
  std::unique_ptr<app::Users> users_;
  app::Principal owner_;
  app::ProgressBoard progress_;
  app::Pool pool_{2}, reads_{1};
  app::GarbageSweep sweep_{runs_.store()};
  app::EarlyStopper early_stopper_{runs_.store(), [](const std::string&, const std::string&) {
                                     return absl::UnimplementedError("nothing is stopped here");
                                   }};
  std::unique_ptr<app::Problems> problems_;
  std::unique_ptr<app::StorageTasks> tasks_;
  std::unique_ptr<app::ServerApi> api_;
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(PermissionsTest, TheTableHasEveryMethodAndNoOther) {
  std::set<std::string> listed;
  for (const auto& [method, rule] : Rules()) listed.insert(method);
  EXPECT_EQ(listed, Methods());
}

struct Asker {
  std::string what;
  std::string token;
  std::set<Who> may;
};

TEST_F(PermissionsTest, EveryMethodLetsInWhomItShould) {
  using grpc::StatusCode;
  int number = 0;
  for (const auto& [method, rule] : Rules()) {
    // New ones for each: a call may take runs, users and tokens away.
    const std::string suffix = std::to_string(++number);
    const std::string mine = Add("mine" + suffix, "member");
    const std::vector<Asker> callers = {
        {"nobody", "", {Who::kAnybody}},
        {"a viewer", Add("viewer" + suffix, "viewer"), {Who::kAnybody, Who::kEverybody}},
        {"another member",
         Add("other" + suffix, "member"),
         {Who::kAnybody, Who::kEverybody, Who::kMembers}},
        {"the owner",
         mine,
         {Who::kAnybody, Who::kEverybody, Who::kMembers, Who::kOwner, Who::kSelf}},
        {"an admin",
         Add("admin" + suffix, "admin"),
         {Who::kAnybody, Who::kEverybody, Who::kMembers, Who::kOwner, Who::kSelf, Who::kAdmins}}};
    for (const Asker& caller : callers) {
      SCOPED_TRACE(method + " by " + caller.what);
      const Subject subject = SubjectOf("mine" + suffix);
      const grpc::Status status = Call(method, *rule.request(subject), caller.token);
      const StatusCode refusal =
          caller.token.empty() ? StatusCode::UNAUTHENTICATED : StatusCode::PERMISSION_DENIED;
      if (status.error_code() == StatusCode::UNIMPLEMENTED) {
        std::printf("%s is declared and does nothing yet\n", method.c_str());
        break;
      }
      if (caller.may.contains(rule.who)) {
        EXPECT_NE(status.error_code(), StatusCode::PERMISSION_DENIED) << status.error_message();
        EXPECT_NE(status.error_code(), StatusCode::UNAUTHENTICATED) << status.error_message();
      } else {
        EXPECT_EQ(status.error_code(), refusal) << status.error_message();
      }
      EXPECT_NE(status.error_code(), StatusCode::DEADLINE_EXCEEDED);
    }
  }
}

// A viewer who was a member once has runs, and may change them no more.
TEST_F(PermissionsTest, AViewerChangesNothingThoughItBeTheirs) {
  const std::string token = Add("vic", "viewer");
  for (const auto& [method, rule] : Rules()) {
    if (rule.who != Who::kOwner) continue;
    const grpc::Status status = Call(method, *rule.request(SubjectOf("vic")), token);
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) continue;  // told by the table
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << method;
  }
}

TEST_F(PermissionsTest, PruningTakesOnlyTheCallersRuns) {
  const std::string bob = Add("bob", "member");
  const Subject own = SubjectOf("bob"), another = SubjectOf("ada");
  for (const Subject& subject : {own, another}) {
    runs_.SetState(subject.run, v1::Run::STATE_CANCELLED);
  }
  v1::PruneRunsRequest prune;
  prune.set_filter("id:*");
  EXPECT_TRUE(Call("RunService.PruneRuns", prune, bob).ok());
  v1::GetRunRequest get;
  get.set_id(own.run);
  EXPECT_EQ(Call("RunService.GetRun", get, bob).error_code(), grpc::StatusCode::NOT_FOUND);
  get.set_id(another.run);
  EXPECT_TRUE(Call("RunService.GetRun", get, bob).ok());
}

TEST_F(PermissionsTest, ARunIsNotPutIntoAnothersExperiment) {
  const std::string bob = Add("bob", "member");
  v1::CreateRunRequest create;
  create.mutable_run()->set_experiment(SubjectOf("ada").experiment);
  EXPECT_EQ(Call("RunService.CreateRun", create, bob).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

}  // namespace
}  // namespace normlab::rpc
