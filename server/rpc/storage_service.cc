#include "server/rpc/storage_service.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "normlab/v1/storage_service.grpc.pb.h"
#include "server/base/mutex.h"
#include "server/rpc/status.h"

namespace normlab::rpc {
namespace {

using app::Api;
using app::Principal;
using grpc::CallbackServerContext;

// What a task on the database says, on its way to a client. The task waits for each message to be
// on its way: a slow client costs one message of memory.
template <typename Response>
class TaskStream : public grpc::ServerWriteReactor<Response>,
                   public std::enable_shared_from_this<TaskStream<Response>> {
 public:
  using Tell = std::function<bool(Response)>;
  using Begin = std::function<void(const Principal&, Tell, app::TaskDone)>;

  void Start(Api& api, Caller caller, Begin begin) {
    self_ = this->shared_from_this();
    api.Post([self = self_, &api, caller = std::move(caller), begin = std::move(begin)] {
      const absl::StatusOr<Principal> principal = api.Authenticate(caller.token, caller.origin);
      if (!principal.ok()) return self->Finish(ToGrpc(principal.status()));
      self->revocation_ = principal->revocation;
      begin(
          *principal, [self](Response response) { return self->Say(std::move(response)); },
          [self](const absl::Status& status) { self->Finish(ToGrpc(status)); });
    });
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mutex_);
    writing_ = false;
    gone_ = gone_ || !ok;
    changed_.NotifyAll();
  }
  void OnCancel() override {
    MutexLock lock(mutex_);
    gone_ = true;
    changed_.NotifyAll();
  }
  void OnDone() override { self_.reset(); }

 private:
  // On the task's thread.
  bool Say(Response response) {
    MutexLock lock(mutex_);
    if (gone_ || (revocation_ && revocation_->revoked())) return false;
    response_ = std::move(response);
    writing_ = true;
    this->StartWrite(&response_);
    while (writing_) changed_.Wait(mutex_);
    return !gone_;
  }

  std::shared_ptr<TaskStream> self_;             // until gRPC is done with this
  std::shared_ptr<app::Revocation> revocation_;  // set before the task begins
  Mutex mutex_;
  CondVar changed_;
  Response response_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool gone_ ABSL_GUARDED_BY(mutex_) = false;
};

template <typename Response>
grpc::ServerWriteReactor<Response>* StartTask(Api& api, const CallbackServerContext& context,
                                              typename TaskStream<Response>::Begin begin) {
  auto stream = std::make_shared<TaskStream<Response>>();
  stream->Start(api, CallerOf(context), std::move(begin));
  return stream.get();
}

class StorageServiceImpl final : public v1::StorageService::CallbackService {
 public:
  explicit StorageServiceImpl(Api& api) : api_(api) {}

  grpc::ServerUnaryReactor* GetStorage(CallbackServerContext* context, const v1::GetStorageRequest*,
                                       v1::Storage* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    api_.Post([this, reactor, response, caller = CallerOf(*context)] {
      const absl::StatusOr<Principal> principal = api_.Authenticate(caller.token, caller.origin);
      absl::StatusOr<v1::Storage> storage =
          principal.ok() ? api_.GetStorage(*principal) : principal.status();
      if (storage.ok()) *response = *std::move(storage);
      reactor->Finish(ToGrpc(storage.status()));
    });
    return reactor;
  }

  grpc::ServerWriteReactor<v1::BackupResponse>* Backup(CallbackServerContext* context,
                                                       const v1::BackupRequest*) override {
    return StartTask<v1::BackupResponse>(
        api_, *context, [this](const Principal& who, app::TellBackup tell, app::TaskDone done) {
          api_.Backup(who, std::move(tell), std::move(done));
        });
  }
  grpc::ServerWriteReactor<v1::CheckStorageResponse>* CheckStorage(
      CallbackServerContext* context, const v1::CheckStorageRequest*) override {
    return StartTask<v1::CheckStorageResponse>(
        api_, *context, [this](const Principal& who, app::TellCheck tell, app::TaskDone done) {
          api_.CheckStorage(who, std::move(tell), std::move(done));
        });
  }
  grpc::ServerWriteReactor<v1::CompactStorageResponse>* CompactStorage(
      CallbackServerContext* context, const v1::CompactStorageRequest*) override {
    return StartTask<v1::CompactStorageResponse>(
        api_, *context, [this](const Principal& who, app::TellCompact tell, app::TaskDone done) {
          api_.CompactStorage(who, std::move(tell), std::move(done));
        });
  }

 private:
  Api& api_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeStorageService(Api& api) {
  return std::make_unique<StorageServiceImpl>(api);
}

}  // namespace normlab::rpc
