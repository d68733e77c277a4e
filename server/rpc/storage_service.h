// StorageService: how the database is, and long work on it whose progress is streamed.
#ifndef NORMLAB_SERVER_RPC_STORAGE_SERVICE_H_
#define NORMLAB_SERVER_RPC_STORAGE_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <memory>

#include "server/app/api.h"

namespace normlab::rpc {

std::unique_ptr<grpc::Service> MakeStorageService(app::Api& api);

}  // namespace normlab::rpc

#endif  // NORMLAB_SERVER_RPC_STORAGE_SERVICE_H_
