// Between absl::Status and gRPC's.
#ifndef NORMLAB_SERVER_RPC_STATUS_H_
#define NORMLAB_SERVER_RPC_STATUS_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/status.h"

namespace normlab::rpc {

// The same code and message; payloads (wrong fields) and an ErrorInfo go along as the details of a
// google.rpc.Status.
grpc::Status ToGrpc(const absl::Status& status);

// The token of `authorization: Bearer TOKEN`, or empty.
std::string BearerToken(const grpc::ServerContextBase& context);

}  // namespace normlab::rpc

#endif  // NORMLAB_SERVER_RPC_STATUS_H_
