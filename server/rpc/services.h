// The public gRPC services: each call is authenticated and passed to the api on its pool.
#ifndef NORMLAB_SERVER_RPC_SERVICES_H_
#define NORMLAB_SERVER_RPC_SERVICES_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <vector>

#include "server/app/api.h"

namespace normlab::rpc {

class WatchLoop;

// RunService, ExperimentService, DeviceService and UserService over `api`. Calls of WatchRuns
// are served by `watches`.
std::vector<std::unique_ptr<grpc::Service>> MakeServices(app::Api& api, WatchLoop& watches);

}  // namespace normlab::rpc

#endif  // NORMLAB_SERVER_RPC_SERVICES_H_
