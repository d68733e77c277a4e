#include "server/rpc/rpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

#include "server/base/grpc_deadline.h"
#include "server/base/strings.h"
#include "server/rpc/malformed_requests.h"
#include "server/rpc/services.h"

namespace normlab::rpc {
namespace {

constexpr int kMinPingMillis = 10'000;  // what clients may send at most that often
constexpr int kMaxReceiveBytes = 16 << 20;
constexpr std::chrono::milliseconds kStopGrace(1000);

}  // namespace

RpcServer::RpcServer(app::Api& api, std::unique_ptr<WorkerService> worker_service,
                     WatchLimits limits)
    : watches_(api, limits) {
  services_ = MakeServices(api, watches_);
  if (worker_service) services_.push_back(std::move(worker_service));
}

RpcServer::~RpcServer() { Stop(); }

absl::Status RpcServer::Start(const Options& options) {
  if (options.socket.string().size() > kLongestSocketPath) {
    return absl::InvalidArgumentError(
        StrCat("the socket's path has ", options.socket.string().size(), " bytes and may have ",
               kLongestSocketPath, ": ", options.socket.string(), "; give another with --socket"));
  }
  static const bool registered = [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  (void)registered;
  struct stat left;  // by a server that was killed; the data folder is locked
  if (lstat(options.socket.c_str(), &left) == 0) {
    if (!S_ISSOCK(left.st_mode)) {
      return absl::FailedPreconditionError(
          StrCat(options.socket.string(), " is there and is no socket; give another --socket"));
    }
    unlink(options.socket.c_str());
  }
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(), &port);
  builder.AddListeningPort(StrCat("unix:", options.socket.string()),
                           grpc::InsecureServerCredentials());
  builder.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // What nobody asks for, and what a thousand watchers would pay for with each message.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  RefuseMalformedRequests(builder);
  for (const std::unique_ptr<grpc::Service>& service : services_) {
    builder.RegisterService(service.get());
  }
  watches_.set_queue(builder.AddCompletionQueue());
  server_ = builder.BuildAndStart();
  if (!server_ || port == 0) {
    return absl::UnavailableError(StrCat("cannot listen on ", options.address,
                                         "; is another server there? (--grpc HOST:PORT)"));
  }
  watches_.Start();
  address_ = StrCat(options.address.substr(0, options.address.rfind(':')), ":", port);
  return absl::OkStatus();
}

void RpcServer::Stop() {
  if (!server_) return;
  if (auto* health = server_->GetHealthCheckService()) health->SetServingStatus(false);
  watches_.EndAll();
  server_->Shutdown(DeadlineAfter(kStopGrace));
  server_->Wait();
  watches_.Stop();
  server_.reset();
}

}  // namespace normlab::rpc
