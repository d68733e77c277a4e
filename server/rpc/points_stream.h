// ReadPoints: a run's points on their way to a client, a page at a time.
#ifndef NORMLAB_SERVER_RPC_POINTS_STREAM_H_
#define NORMLAB_SERVER_RPC_POINTS_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "normlab/v1/run_service.pb.h"
#include "server/app/api.h"
#include "server/rpc/status.h"

namespace normlab::rpc {

// Begins to answer. Pages are read on the api's pool, one when the one before is on its way: a slow
// client costs one page of memory. The answer ends by itself.
grpc::ServerWriteReactor<v1::ReadPointsResponse>* StartPointsStream(
    app::Api& api, Caller caller, const v1::ReadPointsRequest& request);

}  // namespace normlab::rpc

#endif  // NORMLAB_SERVER_RPC_POINTS_STREAM_H_
