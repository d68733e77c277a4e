#include "tests/unit/client/fake_server.h"

#include <fmt/format.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace normlab::client {
namespace {

using namespace normlab::v1;  // every message of the API is used here
using grpc::ServerContext;
using grpc::Status;

Status CheckToken(const ServerContext& context) {
  const auto found = context.client_metadata().find("authorization");
  const std::string expected = std::string("Bearer ") + FakeServer::kToken;
  if (found != context.client_metadata().end() &&
      std::string(found->second.data(), found->second.size()) == expected) {
    return Status::OK;
  }
  return Status(grpc::StatusCode::UNAUTHENTICATED, "no valid token");
}

}  // namespace

class FakeServer::Runs : public RunService::Service {
 public:
  explicit Runs(FakeServer& fake) : fake_(fake) {}

  Status CreateRun(ServerContext* context, const CreateRunRequest* request, Run* run) override {
    std::lock_guard<std::mutex> lock(fake_.mutex_);
    if (Status status = CheckToken(*context); !status.ok()) return status;
    fake_.created.push_back(*request);
    *run = request->run();
    if (!request->validate_only()) run->set_id("01J00000000000000000000NEW");
    run->mutable_effective_spec()->set_ffn_width(256);
    run->mutable_summary()->set_parameter_count(610'176);
    run->mutable_summary()->set_flops_per_step(2.853e9);
    run->mutable_summary()->set_memory_bytes(150 << 20);
    run->set_state(Run::STATE_QUEUED);
    return fake_.create_status;
  }

  Status GetRun(ServerContext* context, const GetRunRequest* request, Run* run) override {
    std::lock_guard<std::mutex> lock(fake_.mutex_);
    if (Status status = CheckToken(*context); !status.ok()) return status;
    for (const Run& known : fake_.runs) {
      if (known.id() == request->id()) {
        *run = known;
        return Status::OK;
      }
    }
    return Status(grpc::StatusCode::NOT_FOUND, "no run " + request->id());
  }

  // Two a page, whatever is asked: clients must follow the token.
  Status ListRuns(ServerContext* context, const ListRunsRequest* request,
                  ListRunsResponse* response) override {
    std::lock_guard<std::mutex> lock(fake_.mutex_);
    if (Status status = CheckToken(*context); !status.ok()) return status;
    size_t at = request->page_token().empty() ? 0 : std::stoul(request->page_token());
    for (int i = 0; i < 2 && at < fake_.runs.size(); ++i) *response->add_runs() = fake_.runs[at++];
    if (at < fake_.runs.size()) response->set_next_page_token(std::to_string(at));
    return Status::OK;
  }

  Status CancelRun(ServerContext*, const CancelRunRequest* request, Run* run) override {
    std::lock_guard<std::mutex> lock(fake_.mutex_);
    fake_.cancelled.push_back(request->id());
    run->set_id(request->id());
    run->set_state(Run::STATE_CANCELLING);
    return Status::OK;
  }

  Status HoldRun(ServerContext*, const HoldRunRequest* request, Run* run) override {
    std::lock_guard<std::mutex> lock(fake_.mutex_);
    fake_.held.push_back(request->id());
    run->set_id(request->id());
    return Status::OK;
  }

  Status ReleaseRun(ServerContext*, const ReleaseRunRequest* request, Run* run) override {
    std::lock_guard<std::mutex> lock(fake_.mutex_);
    fake_.released.push_back(request->id());
    run->set_id(request->id());
    return Status::OK;
  }

  Status MoveRun(ServerContext*, const MoveRunRequest* request, Run* run) override {
    std::lock_guard<std::mutex> lock(fake_.mutex_);
    fake_.moved.push_back(*request);
    run->set_id(request->id());
    return Status::OK;
  }

  Status UpdateRun(ServerContext*, const UpdateRunRequest* request, Run* run) override {
    std::lock_guard<std::mutex> lock(fake_.mutex_);
    fake_.updated.push_back(*request);
    *run = request->run();
    return Status::OK;
  }

  Status PauseRun(ServerContext*, const PauseRunRequest* request, Run* run) override {
    std::lock_guard<std::mutex> lock(fake_.mutex_);
    fake_.paused.push_back(request->id());
    run->set_id(request->id());
    run->set_state(Run::STATE_PAUSING);
    return fake_.pause_status;
  }

  Status ResumeRun(ServerContext*, const ResumeRunRequest* request, Run* run) override {
    std::lock_guard<std::mutex> lock(fake_.mutex_);
    fake_.resumed.push_back(request->id());
    run->set_id(request->id());
    run->set_state(Run::STATE_QUEUED);
    return Status::OK;
  }

  Status RetryRun(ServerContext*, const RetryRunRequest* request, Run* run) override {
    std::lock_guard<std::mutex> lock(fake_.mutex_);
    fake_.retried.push_back(*request);
    run->set_id(request->id());
    run->set_state(Run::STATE_QUEUED);
    return fake_.retry_status;
  }

  Status ProbeRun(ServerContext*, const ProbeRunRequest* request, Run* run) override {
    std::lock_guard<std::mutex> lock(fake_.mutex_);
    fake_.probed.push_back(request->id());
    fake_.on_probe();
    run->set_id(request->id());
    run->set_state(Run::STATE_RUNNING);
    return fake_.probe_status[request->id()];
  }

  Status ReadCheckpoint(ServerContext*, const ReadCheckpointRequest*,
                        grpc::ServerWriter<ReadCheckpointResponse>* writer) override {
    std::lock_guard<std::mutex> lock(fake_.mutex_);
    if (fake_.checkpoint.empty()) {
      return Status(grpc::StatusCode::FAILED_PRECONDITION, "the run has no checkpoint yet");
    }
    ReadCheckpointResponse piece;
    piece.set_step(1200);
    piece.set_total_bytes(fake_.checkpoint_bytes);
    for (const std::string& data : fake_.checkpoint) {
      piece.set_data(data);
      writer->Write(piece);
      piece.Clear();
    }
    return Status::OK;
  }

  Status ReadSeries(ServerContext*, const ReadSeriesRequest* request,
                    ReadSeriesResponse* response) override {
    std::lock_guard<std::mutex> lock(fake_.mutex_);
    response->set_run(request->run());
    for (const Column& column : fake_.series[request->run()]) {
      *response->add_columns()->mutable_column() = column;
    }
    return Status::OK;
  }

  // A piece for each attempt.
  Status ReadPoints(ServerContext*, const ReadPointsRequest* request,
                    grpc::ServerWriter<ReadPointsResponse>* writer) override {
    std::vector<Column> columns;
    {
      std::lock_guard<std::mutex> lock(fake_.mutex_);
      columns = fake_.series[request->run()];
    }
    for (int32_t attempt = 1; attempt <= (request->all_attempts() ? 2 : 1); ++attempt) {
      ReadPointsResponse piece;
      piece.mutable_points()->set_run(request->run());
      piece.mutable_points()->set_attempt(attempt);
      for (const Column& column : columns) {
        const auto& names = request->names();
        if (names.empty() || std::find(names.begin(), names.end(), column.name()) != names.end()) {
          *piece.mutable_points()->add_columns() = column;
        }
      }
      writer->Write(piece);
    }
    return Status::OK;
  }

  Status WatchRuns(ServerContext* context, const WatchRunsRequest* request,
                   grpc::ServerWriter<WatchRunsResponse>* writer) override {
    WatchScript script;
    {
      std::lock_guard<std::mutex> lock(fake_.mutex_);
      if (Status status = CheckToken(*context); !status.ok()) return status;
      fake_.watched.push_back(*request);
      const size_t call = fake_.watched.size() - 1;
      if (call < fake_.watches.size()) script = fake_.watches[call];
    }
    for (const WatchRunsResponse& event : script.events) writer->Write(event);
    while (script.hang && !context->IsCancelled()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return script.end;
  }

 private:
  FakeServer& fake_;
};

class FakeServer::Experiments : public ExperimentService::Service {
 public:
  explicit Experiments(FakeServer& fake) : fake_(fake) {}

  Status CreateExperiment(ServerContext*, const CreateExperimentRequest* request,
                          Experiment* experiment) override {
    std::lock_guard<std::mutex> lock(fake_.mutex_);
    fake_.experiments.push_back(*request);
    Fill(experiment);
    if (request->experiment().has_sweep()) {
      *experiment->mutable_sweep() = request->experiment().sweep();
    }
    return fake_.create_status;
  }

  Status CancelExperiment(ServerContext*, const CancelExperimentRequest* request,
                          Experiment* experiment) override {
    std::lock_guard<std::mutex> lock(fake_.mutex_);
    fake_.cancelled_experiments.push_back(request->id());
    Fill(experiment);
    return Status::OK;
  }

  // One a page.
  Status ListExperiments(ServerContext*, const ListExperimentsRequest* request,
                         ListExperimentsResponse* response) override {
    std::lock_guard<std::mutex> lock(fake_.mutex_);
    Experiment* experiment = response->add_experiments();
    Fill(experiment);
    if (!request->page_token().empty()) {
      experiment->set_id("01JOTHER");
      experiment->set_display_name("warmup");
    } else {
      response->set_next_page_token("second");
    }
    return Status::OK;
  }

  Status GetExperiment(ServerContext*, const GetExperimentRequest*,
                       Experiment* experiment) override {
    std::lock_guard<std::mutex> lock(fake_.mutex_);
    Fill(experiment);
    return Status::OK;
  }

  Status ListPresets(ServerContext*, const ListPresetsRequest*,
                     ListPresetsResponse* response) override {
    *response->add_presets() = SmallArticle();
    *response->add_presets() = SmallStudy();
    return Status::OK;
  }

 private:
  void Fill(Experiment* experiment) {
    experiment->set_id("01JEXPERIMENT");
    experiment->set_display_name("Where does the norm go?");
    for (const Run& run : fake_.runs) *experiment->add_runs() = run;
  }

  FakeServer& fake_;
};

class FakeServer::Devices : public DeviceService::Service {
  Status ListDevices(ServerContext*, const ListDevicesRequest*,
                     ListDevicesResponse* response) override {
    Device* cpu = response->add_devices();
    cpu->set_id("cpu:0");
    cpu->set_kind(Device::KIND_CPU);
    cpu->set_name("CPU");
    cpu->set_threads(1);
    return Status::OK;
  }
  Status GetQueue(ServerContext*, const GetQueueRequest*, Queue* queue) override {
    QueueEntry& entry = *queue->add_entries();
    entry.set_run("01K0000000000000000000000A");
    entry.set_display_name("small");
    entry.set_user("ann");
    entry.set_priority("normal");
    entry.set_position(1);
    entry.set_wait_reason("waits for run big on cpu:0");
    entry.set_device("gpu");
    entry.mutable_resources()->set_gpus(2);
    entry.mutable_resources()->set_gpu_memory_bytes(int64_t{4} << 30);
    entry.mutable_resources()->set_exclusive(true);
    queue->set_total_size(3);
    UserUsage& usage = *queue->add_users();
    usage.set_user("ann");
    usage.set_queued(3);
    usage.set_decayed_device_seconds(5400);
    return Status::OK;
  }
};

class FakeServer::Users : public UserService::Service {
 public:
  explicit Users(FakeServer& fake) : fake_(fake) {}

  Status GetMe(ServerContext* context, const GetMeRequest*, User* user) override {
    if (Status status = CheckToken(*context); !status.ok()) return status;
    user->set_name("owner");
    user->set_role("admin");
    return Status::OK;
  }

  Status CreateLoginCode(ServerContext*, const CreateLoginCodeRequest*,
                         CreateLoginCodeResponse* response) override {
    response->set_code("abc");
    response->set_url("http://127.0.0.1:8710/#login=abc");
    return Status::OK;
  }

  Status CreateUser(ServerContext*, const CreateUserRequest* request,
                    CreateUserResponse* response) override {
    fake_.users_made.push_back(*request);
    *response->mutable_user() = request->user();
    response->set_token("token-of-" + request->user().name());
    return Status::OK;
  }

  Status ListUsers(ServerContext*, const ListUsersRequest* request,
                   ListUsersResponse* response) override {
    User& ada = *response->add_users();
    ada.set_name("ada");
    ada.set_role("member");
    ada.mutable_limits()->set_gpu_memory_bytes(int64_t{8} << 30);
    if (!request->show_removed()) return Status::OK;
    response->add_users()->set_name("bob");
    response->mutable_users(1)->set_removed(true);
    return Status::OK;
  }

  Status UpdateUser(ServerContext*, const UpdateUserRequest* request, User* user) override {
    fake_.users_changed.push_back(*request);
    *user = request->user();
    return Status::OK;
  }

  Status DeleteUser(ServerContext*, const DeleteUserRequest* request,
                    google::protobuf::Empty*) override {
    fake_.users_removed.push_back(request->name());
    return Status::OK;
  }

  Status RotateToken(ServerContext*, const RotateTokenRequest* request,
                     RotateTokenResponse* response) override {
    fake_.rotated.push_back(request->name());
    response->set_token("new-token");
    return Status::OK;
  }

  // 1500 lines in all.
  Status ListAuditEvents(ServerContext*, const ListAuditEventsRequest* request,
                         ListAuditEventsResponse* response) override {
    fake_.audit_asked.push_back(*request);
    int64_t id = request->page_token().empty() ? 1500 : std::stoll(request->page_token()) - 1;
    for (int i = 0; i < request->page_size() && id > 0; ++i, --id) {
      AuditEvent& event = *response->add_events();
      event.set_id(id);
      event.set_user("ada");
      event.set_action("cancel");
      event.set_run("01J0000000AAAAAAAAAAAAAAAA");
      event.set_detail("running -> cancelling");
      event.set_origin("unix socket");
    }
    if (id > 0) response->set_next_page_token(std::to_string(id + 1));
    return Status::OK;
  }

 private:
  FakeServer& fake_;
};

FakeServer::FakeServer()
    : run_service_(std::make_unique<Runs>(*this)),
      experiment_service_(std::make_unique<Experiments>(*this)),
      device_service_(std::make_unique<Devices>()),
      user_service_(std::make_unique<Users>(*this)) {
  std::string folder = "/tmp/normlab-client-XXXXXX";
  data_dir_ = ::mkdtemp(folder.data());
  std::filesystem::create_directory(data_dir_ / "sock");
  ::chmod((data_dir_ / "sock").c_str(), 0700);
  const std::string socket = (data_dir_ / "sock" / "normlab.sock").string();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(run_service_.get());
  builder.RegisterService(experiment_service_.get());
  builder.RegisterService(device_service_.get());
  builder.RegisterService(user_service_.get());
  server_ = builder.BuildAndStart();
  const std::filesystem::path file = data_dir_ / "endpoint.json";
  std::ofstream(file) << fmt::format(
      "{{\"http\":\"127.0.0.1:8710\",\"grpc\":\"127.0.0.1:8711\",\"socket\":\"{}\",\"pid\":{},"
      "\"start_time\":0,\"token\":\"{}\"}}",
      socket, ::getpid(), kToken);
  ::chmod(file.c_str(), 0600);
}

FakeServer::~FakeServer() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
  std::filesystem::remove_all(data_dir_);
}

Preset SmallArticle() {
  Preset preset;
  preset.set_name("article");
  preset.set_title("Where does the norm go?");
  preset.set_source("the article");
  for (const char* placement : {"pre", "post"}) {
    PresetRun* run = preset.add_runs();
    run->set_display_name(placement);
    run->mutable_spec()->set_placement(placement);
    run->set_colour(placement == std::string("pre") ? "#2563eb" : "#dc5a3a");
    run->mutable_published()->set_final_loss(0.00165);
    run->mutable_published()->set_max_gradient_norm(1.004);
    run->set_band("within 1e-3");
  }
  return preset;
}

Preset SmallStudy() {
  Preset preset;
  preset.set_name("study");
  preset.set_title("Which placement learns?");
  PresetTable* table = preset.mutable_table();
  table->set_quantity(PresetTable::QUANTITY_FINAL_LOSS);
  table->add_row_settings("placement");
  for (const char* placement : {"pre", "post"}) {
    PresetRun* run = preset.add_runs();
    run->set_display_name(placement);
    run->mutable_spec()->set_placement(placement);
  }
  PresetExpectation* expected = table->add_expectations();
  expected->add_row("pre");
  expected->set_value(0.1);
  expected->set_maximum(0.5);
  return preset;
}

Status BadRequestStatus(const std::vector<std::pair<std::string, std::string>>& violations) {
  google::rpc::BadRequest bad_request;
  for (const auto& [field, description] : violations) {
    auto* violation = bad_request.add_field_violations();
    violation->set_field(field);
    violation->set_description(description);
  }
  google::rpc::Status details;
  details.set_code(grpc::StatusCode::INVALID_ARGUMENT);
  details.add_details()->PackFrom(bad_request);
  return Status(grpc::StatusCode::INVALID_ARGUMENT, "the spec is wrong",
                details.SerializeAsString());
}

}  // namespace normlab::client
