// The server's API with this client's manners: a token on every call, a deadline on every unary
// one, errors as absl::Status.
//
//   absl::StatusOr<Run> run = client.Call(client.runs(), &RunService::Stub::GetRun, request);
//
// Any thread.
#ifndef NORMLAB_CLIENT_API_CLIENT_H_
#define NORMLAB_CLIENT_API_CLIENT_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/api_error.h"
#include "client/deadline.h"
#include "client/endpoint.h"
#include "normlab/v1/device_service.grpc.pb.h"
#include "normlab/v1/experiment_service.grpc.pb.h"
#include "normlab/v1/run_service.grpc.pb.h"
#include "normlab/v1/storage_service.grpc.pb.h"
#include "normlab/v1/user_service.grpc.pb.h"

namespace normlab::client {

class ApiClient {
 public:
  explicit ApiClient(Endpoint endpoint);

  normlab::v1::RunService::Stub& runs() { return *runs_; }
  normlab::v1::ExperimentService::Stub& experiments() { return *experiments_; }
  normlab::v1::DeviceService::Stub& devices() { return *devices_; }
  normlab::v1::UserService::Stub& users() { return *users_; }
  normlab::v1::StorageService::Stub& storage() { return *storage_; }
  const Endpoint& endpoint() const { return endpoint_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  // Adds the token. Streams have no deadline; give them a way to be cancelled.
  void Prepare(grpc::ClientContext& context) const;

  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(
      Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
      const Request& request, std::chrono::milliseconds timeout = kUnaryTimeout) const {
    grpc::ClientContext context;
    Prepare(context);
    context.set_deadline(DeadlineAfter(timeout));
    Response response;
    const grpc::Status status = (stub.*method)(&context, request, &response);
    if (!status.ok()) return FromGrpc(status);
    return response;
  }

 private:
  static constexpr std::chrono::milliseconds kUnaryTimeout{10'000};

  Endpoint endpoint_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<normlab::v1::RunService::Stub> runs_;
  std::unique_ptr<normlab::v1::ExperimentService::Stub> experiments_;
  std::unique_ptr<normlab::v1::DeviceService::Stub> devices_;
  std::unique_ptr<normlab::v1::UserService::Stub> users_;
  std::unique_ptr<normlab::v1::StorageService::Stub> storage_;
};

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_API_CLIENT_H_
