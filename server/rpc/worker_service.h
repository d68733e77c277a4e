// WorkerService: what trainers talk to.
#ifndef NORMLAB_SERVER_RPC_WORKER_SERVICE_H_
#define NORMLAB_SERVER_RPC_WORKER_SERVICE_H_

#include <memory>

#include "normlab/worker/v1/worker.grpc.pb.h"
#include "server/app/dispatcher.h"
#include "server/app/pool.h"
#include "server/storage/store.h"

namespace normlab::rpc {

class WorkerService final : public worker::v1::WorkerService::CallbackService {
 public:
  WorkerService(app::Dispatcher& dispatcher, storage::Store& store, app::Pool& pool)
      : dispatcher_(dispatcher), store_(store), pool_(pool) {}

  grpc::ServerBidiReactor<worker::v1::AttachRequest, worker::v1::AttachResponse>* Attach(
      grpc::CallbackServerContext* context) override;

 private:
  app::Dispatcher& dispatcher_;
  storage::Store& store_;
  app::Pool& pool_;
};

}  // namespace normlab::rpc

#endif  // NORMLAB_SERVER_RPC_WORKER_SERVICE_H_
