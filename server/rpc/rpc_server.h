// The gRPC server: a unix socket for this machine's users, a TCP port for the rest.
#ifndef NORMLAB_SERVER_RPC_RPC_SERVER_H_
#define NORMLAB_SERVER_RPC_RPC_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/app/api.h"
#include "server/rpc/watch_loop.h"
#include "server/rpc/worker_service.h"

namespace normlab::rpc {

class RpcServer {
 public:
  // Bytes of a unix socket's path, by sockaddr_un.
  static constexpr size_t kLongestSocketPath = 107;

  struct Options {
    std::string address;           // host:port; port 0 takes a free one
    std::filesystem::path socket;  // of the unix socket; its folder is private
  };
  // Without a worker service it is a server for people alone.
  RpcServer(app::Api& api, std::unique_ptr<WorkerService> worker_service,
            WatchLimits limits = {});
  ~RpcServer();

  // Serves, with reflection and health. UNAVAILABLE, naming the address, when it is taken.
  absl::Status Start(const Options& options);
  // Lets calls under way end, streams with UNAVAILABLE; then everything is cut.
  void Stop();

  // host:port with the port that was taken.
  const std::string& address() const { return address_; }

 private:
  WatchLoop watches_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace normlab::rpc

#endif  // NORMLAB_SERVER_RPC_RPC_SERVER_H_
