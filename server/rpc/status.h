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

// What a call says of its caller.
struct Caller {
  std::string token;   // of `authorization: Bearer TOKEN`, or empty
  std::string origin;  // the peer's address as gRPC writes it, or "unix socket"
};
Caller CallerOf(const grpc::ServerContextBase& context);

}  // namespace normlab::rpc

#endif  // NORMLAB_SERVER_RPC_STATUS_H_
