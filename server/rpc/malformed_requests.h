// What a caller is told whose request is no message of its type.
#ifndef NORMLAB_SERVER_RPC_MALFORMED_REQUESTS_H_
#define NORMLAB_SERVER_RPC_MALFORMED_REQUESTS_H_

#include <grpcpp/server_builder.h>

namespace normlab::rpc {

// Makes the server answer calls whose request cannot be parsed (cut off, or a text that is not
// UTF-8) with INVALID_ARGUMENT. gRPC by itself says UNIMPLEMENTED, which clients take for an older
// server.
void RefuseMalformedRequests(grpc::ServerBuilder& builder);

}  // namespace normlab::rpc

#endif  // NORMLAB_SERVER_RPC_MALFORMED_REQUESTS_H_
