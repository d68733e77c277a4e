// ReadCheckpoint: a file on its way to a client, a piece at a time.
#ifndef NORMLAB_SERVER_RPC_CHECKPOINT_STREAM_H_
#define NORMLAB_SERVER_RPC_CHECKPOINT_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "normlab/v1/run_service.pb.h"
#include "server/app/api.h"
#include "server/rpc/status.h"

namespace normlab::rpc {

// Begins to answer. Files are read on the api's pool, one piece when the one before is on its way:
// a slow client costs one piece of memory. The answer ends by itself.
grpc::ServerWriteReactor<v1::ReadCheckpointResponse>* StartCheckpointStream(
    app::Api& api, Caller caller, const v1::ReadCheckpointRequest& request);

}  // namespace normlab::rpc

#endif  // NORMLAB_SERVER_RPC_CHECKPOINT_STREAM_H_
