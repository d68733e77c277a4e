#include "client/api_client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

namespace normlab::client {
namespace {

std::shared_ptr<grpc::Channel> MakeChannel(const Endpoint& endpoint) {
  grpc::ChannelArguments arguments;
  // A long run's series is larger than gRPC's default of 4 MB.
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  // Without its own pool a new channel to a server that was just restarted would wait out the
  // back-off of the old one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const bool loopback = endpoint.target.rfind("127.", 0) == 0 ||
                        endpoint.target.rfind("localhost:", 0) == 0 ||
                        endpoint.target.rfind("[::1]", 0) == 0;
  if (loopback || !endpoint.socket.empty()) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(endpoint.target, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

ApiClient::ApiClient(Endpoint endpoint)
    : endpoint_(std::move(endpoint)),
      channel_(MakeChannel(endpoint_)),
      runs_(normlab::v1::RunService::NewStub(channel_)),
      experiments_(normlab::v1::ExperimentService::NewStub(channel_)),
      devices_(normlab::v1::DeviceService::NewStub(channel_)),
      users_(normlab::v1::UserService::NewStub(channel_)),
      storage_(normlab::v1::StorageService::NewStub(channel_)) {}

void ApiClient::Prepare(grpc::ClientContext& context) const {
  if (!endpoint_.token.empty()) {
    context.AddMetadata("authorization", "Bearer " + endpoint_.token);
  }
}

}  // namespace normlab::client
