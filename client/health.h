// The standard health check (grpc.health.v1), which needs no token.
#ifndef NORMLAB_CLIENT_HEALTH_H_
#define NORMLAB_CLIENT_HEALTH_H_

#include <grpcpp/channel.h>

#include <chrono>
#include <memory>

#include "absl/status/status.h"

namespace normlab::client {

// OK when the server says SERVING.
absl::Status CheckHealth(const std::shared_ptr<grpc::Channel>& channel,
                         std::chrono::milliseconds timeout);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_HEALTH_H_
