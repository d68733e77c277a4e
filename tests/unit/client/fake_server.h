// A normlab server that says what a test tells it to, on a unix socket of its own data folder.
#ifndef NORMLAB_TESTS_UNIT_CLIENT_FAKE_SERVER_H_
#define NORMLAB_TESTS_UNIT_CLIENT_FAKE_SERVER_H_

#include <grpcpp/server.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "normlab/v1/device_service.grpc.pb.h"
#include "normlab/v1/experiment_service.grpc.pb.h"
#include "normlab/v1/run_service.grpc.pb.h"
#include "normlab/v1/user_service.grpc.pb.h"

namespace normlab::client {

// What one call of WatchRuns sends, and how it ends.
struct WatchScript {
  std::vector<normlab::v1::WatchRunsResponse> events;
  grpc::Status end = grpc::Status::OK;
  bool hang = false;  // stays open until the client goes away
};

class FakeServer {
 public:
  static constexpr char kToken[] = "secret-token";

  FakeServer();
  ~FakeServer();

  const std::filesystem::path& data_dir() const { return data_dir_; }

  // What the server has. Set before the first call.
  std::vector<normlab::v1::Run> runs;
  std::map<std::string, std::vector<normlab::v1::Column>> series;  // by run
  std::vector<WatchScript> watches;                                // one a call, then OK at once
  grpc::Status create_status = grpc::Status::OK;
  grpc::Status pause_status = grpc::Status::OK;
  std::map<std::string, grpc::Status> probe_status;  // by run; else OK
  std::function<void()> on_probe = [] {};
  std::vector<std::string> checkpoint;  // the pieces of every run's; none: it has no checkpoint
  int64_t checkpoint_bytes = 0;         // as announced

  // What it was asked.
  std::vector<normlab::v1::CreateRunRequest> created;
  std::vector<normlab::v1::CreateExperimentRequest> experiments;
  std::vector<normlab::v1::WatchRunsRequest> watched;
  std::vector<std::string> cancelled;
  std::vector<std::string> held;
  std::vector<std::string> released;
  std::vector<normlab::v1::MoveRunRequest> moved;
  std::vector<normlab::v1::UpdateRunRequest> updated;
  std::vector<std::string> cancelled_experiments;
  std::vector<std::string> paused;
  std::vector<std::string> resumed;
  std::vector<normlab::v1::RetryRunRequest> retried;
  grpc::Status retry_status;
  std::vector<std::string> probed;
  std::vector<normlab::v1::CreateUserRequest> users_made;
  std::vector<normlab::v1::UpdateUserRequest> users_changed;
  std::vector<std::string> users_removed;
  std::vector<std::string> rotated;
  std::vector<normlab::v1::ListAuditEventsRequest> audit_asked;

 private:
  class Runs;
  class Experiments;
  class Devices;
  class Users;

  std::filesystem::path data_dir_;
  std::mutex mutex_;
  std::unique_ptr<Runs> run_service_;
  std::unique_ptr<Experiments> experiment_service_;
  std::unique_ptr<Devices> device_service_;
  std::unique_ptr<Users> user_service_;
  std::unique_ptr<grpc::Server> server_;
};

// The preset that the fake server offers: two runs of the article.
normlab::v1::Preset SmallArticle();

// Its other preset: the same two runs in a table that expects pre to end below 0.5.
normlab::v1::Preset SmallStudy();

// INVALID_ARGUMENT with the details of the standard error model.
grpc::Status BadRequestStatus(const std::vector<std::pair<std::string, std::string>>& violations);

}  // namespace normlab::client

#endif  // NORMLAB_TESTS_UNIT_CLIENT_FAKE_SERVER_H_
