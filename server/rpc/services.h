// The public gRPC services: each call is authenticated and passed to the api on its pool.
#ifndef NORMLAB_SERVER_RPC_SERVICES_H_
#define NORMLAB_SERVER_RPC_SERVICES_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <vector>

#include "server/app/api.h"

namespace normlab::rpc {

class WatchRegistry;

// RunService, ExperimentService, DeviceService, UserService and StorageService over `api`. Streams
// of WatchRuns are ended by `registry`.
std::vector<std::unique_ptr<grpc::Service>> MakeServices(app::Api& api, WatchRegistry& registry);

}  // namespace normlab::rpc

#endif  // NORMLAB_SERVER_RPC_SERVICES_H_
