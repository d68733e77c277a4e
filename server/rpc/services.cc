#include "server/rpc/services.h"

#include <functional>
#include <string>
#include <utility>

#include "normlab/v1/device_service.grpc.pb.h"
#include "normlab/v1/experiment_service.grpc.pb.h"
#include "normlab/v1/run_service.grpc.pb.h"
#include "normlab/v1/user_service.grpc.pb.h"
#include "server/rpc/checkpoint_stream.h"
#include "server/rpc/points_stream.h"
#include "server/rpc/status.h"
#include "server/rpc/storage_service.h"
#include "server/rpc/watch_loop.h"
#include "server/rpc/watch_stream.h"

namespace normlab::rpc {
namespace {

using app::Api;
using app::Principal;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

using Post = void (Api::*)(std::function<void()>);

// Answers with what `call` returns for the caller, from the api's pool. The request that `call`
// reads lives until Finish.
template <typename Response>
ServerUnaryReactor* Answer(CallbackServerContext* context, Api& api, Response* response,
                           std::function<absl::StatusOr<Response>(const Principal&)> call,
                           Post post = &Api::Post) {
  ServerUnaryReactor* const reactor = context->DefaultReactor();
  (api.*post)([&api, response, reactor, caller = CallerOf(*context), call = std::move(call)] {
    const absl::StatusOr<Principal> principal = api.Authenticate(caller.token, caller.origin);
    if (!principal.ok()) {
      reactor->Finish(ToGrpc(principal.status()));
      return;
    }
    absl::StatusOr<Response> result = call(*principal);
    if (result.ok()) *response = *std::move(result);
    reactor->Finish(ToGrpc(result.status()));
  });
  return reactor;
}

// Declares one unary method that passes its request on.
#define NORMLAB_UNARY(Method, Request, Response)                                                 \
  ServerUnaryReactor* Method(CallbackServerContext* context, const v1::Request* request,         \
                             v1::Response* response) override {                                  \
    return Answer<v1::Response>(context, api_, response, [this, request](const Principal& who) { \
      return api_.Method(who, *request);                                                         \
    });                                                                                          \
  }

// The same for one that may read much.
#define NORMLAB_UNARY_READ(Method, Request, Response)                                    \
  ServerUnaryReactor* Method(CallbackServerContext* context, const v1::Request* request, \
                             v1::Response* response) override {                          \
    return Answer<v1::Response>(                                                         \
        context, api_, response,                                                         \
        [this, request](const Principal& who) { return api_.Method(who, *request); },    \
        &Api::PostRead);                                                                 \
  }

// The same for methods whose answer says nothing.
#define NORMLAB_UNARY_DONE(Method, Request)                                                \
  ServerUnaryReactor* Method(CallbackServerContext* context, const v1::Request* request,   \
                             google::protobuf::Empty* response) override {                 \
    return Answer<google::protobuf::Empty>(                                                \
        context, api_, response,                                                           \
        [this, request](const Principal& who) -> absl::StatusOr<google::protobuf::Empty> { \
          const absl::Status status = api_.Method(who, *request);                          \
          if (!status.ok()) return status;                                                 \
          return google::protobuf::Empty();                                                \
        });                                                                                \
  }

// The same for methods whose request says nothing.
#define NORMLAB_UNARY_EMPTY(Method, Request, Response)                                      \
  ServerUnaryReactor* Method(CallbackServerContext* context, const v1::Request*,            \
                             v1::Response* response) override {                             \
    return Answer<v1::Response>(context, api_, response,                                    \
                                [this](const Principal& who) { return api_.Method(who); }); \
  }

template <typename Base>
using QueueMethods =
    v1::RunService::WithCallbackMethod_HoldRun<v1::RunService::WithCallbackMethod_ReleaseRun<
        v1::RunService::WithCallbackMethod_MoveRun<Base>>>;

using RunServiceBase = v1::RunService::WithCallbackMethod_CreateRun<
    v1::RunService::WithCallbackMethod_GetRun<v1::RunService::WithCallbackMethod_ListRuns<
        v1::RunService::WithCallbackMethod_UpdateRun<v1::RunService::WithCallbackMethod_DeleteRun<
            v1::RunService::WithCallbackMethod_PruneRuns<
                QueueMethods<v1::RunService::WithCallbackMethod_CancelRun<
                    v1::RunService::WithCallbackMethod_PauseRun<
                        v1::RunService::WithCallbackMethod_ResumeRun<
                            v1::RunService::WithCallbackMethod_RetryRun<
                                v1::RunService::WithCallbackMethod_ProbeRun<
                                    v1::RunService::WithCallbackMethod_ReadLog<
                                        v1::RunService::WithCallbackMethod_ReadSeries<
                                            v1::RunService::WithCallbackMethod_ReadPoints<
                                                v1::RunService::WithCallbackMethod_ReadCheckpoint<
                                                    v1::RunService::WithRawMethod_WatchRuns<
                                                        v1::RunService::Service>>>>>>>>>>>>>>>>>;

class RunServiceImpl final : public RunServiceBase {
 public:
  RunServiceImpl(Api& api, WatchLoop& watches) : api_(api) {
    watches.set_accept([this](grpc::ServerContext* context, grpc::ByteBuffer* request,
                              grpc::ServerAsyncWriter<grpc::ByteBuffer>* writer,
                              grpc::ServerCompletionQueue* queue, void* tag) {
      RequestWatchRuns(context, request, writer, queue, queue, tag);
    });
  }
  NORMLAB_UNARY(CreateRun, CreateRunRequest, Run)
  NORMLAB_UNARY(GetRun, GetRunRequest, Run)
  NORMLAB_UNARY(ListRuns, ListRunsRequest, ListRunsResponse)
  NORMLAB_UNARY(UpdateRun, UpdateRunRequest, Run)
  NORMLAB_UNARY_DONE(DeleteRun, DeleteRunRequest)
  NORMLAB_UNARY(PruneRuns, PruneRunsRequest, PruneRunsResponse)
  NORMLAB_UNARY(HoldRun, HoldRunRequest, Run)
  NORMLAB_UNARY(ReleaseRun, ReleaseRunRequest, Run)
  NORMLAB_UNARY(MoveRun, MoveRunRequest, Run)
  NORMLAB_UNARY(CancelRun, CancelRunRequest, Run)
  NORMLAB_UNARY(PauseRun, PauseRunRequest, Run)
  NORMLAB_UNARY(ResumeRun, ResumeRunRequest, Run)
  NORMLAB_UNARY(RetryRun, RetryRunRequest, Run)
  NORMLAB_UNARY(ProbeRun, ProbeRunRequest, Run)
  NORMLAB_UNARY_READ(ReadSeries, ReadSeriesRequest, ReadSeriesResponse)
  NORMLAB_UNARY_READ(ReadLog, ReadLogRequest, ReadLogResponse)

  grpc::ServerWriteReactor<v1::ReadCheckpointResponse>* ReadCheckpoint(
      CallbackServerContext* context, const v1::ReadCheckpointRequest* request) override {
    return StartCheckpointStream(api_, CallerOf(*context), *request);
  }

  grpc::ServerWriteReactor<v1::ReadPointsResponse>* ReadPoints(
      CallbackServerContext* context, const v1::ReadPointsRequest* request) override {
    return StartPointsStream(api_, CallerOf(*context), *request);
  }

 private:
  Api& api_;
};

class ExperimentServiceImpl final : public v1::ExperimentService::CallbackService {
 public:
  explicit ExperimentServiceImpl(Api& api) : api_(api) {}
  NORMLAB_UNARY(CreateExperiment, CreateExperimentRequest, Experiment)
  NORMLAB_UNARY(GetExperiment, GetExperimentRequest, Experiment)
  NORMLAB_UNARY(CancelExperiment, CancelExperimentRequest, Experiment)
  NORMLAB_UNARY(ListExperiments, ListExperimentsRequest, ListExperimentsResponse)
  NORMLAB_UNARY_EMPTY(ListPresets, ListPresetsRequest, ListPresetsResponse)

 private:
  Api& api_;
};

class DeviceServiceImpl final : public v1::DeviceService::CallbackService {
 public:
  explicit DeviceServiceImpl(Api& api) : api_(api) {}
  NORMLAB_UNARY_EMPTY(ListDevices, ListDevicesRequest, ListDevicesResponse)
  NORMLAB_UNARY(GetQueue, GetQueueRequest, Queue)
  NORMLAB_UNARY(UpdateDevice, UpdateDeviceRequest, Device)

 private:
  Api& api_;
};

class UserServiceImpl final : public v1::UserService::CallbackService {
 public:
  explicit UserServiceImpl(Api& api) : api_(api) {}
  NORMLAB_UNARY_EMPTY(GetMe, GetMeRequest, User)
  NORMLAB_UNARY_EMPTY(CreateLoginCode, CreateLoginCodeRequest, CreateLoginCodeResponse)
  NORMLAB_UNARY(ListUsers, ListUsersRequest, ListUsersResponse)
  NORMLAB_UNARY(CreateUser, CreateUserRequest, CreateUserResponse)
  NORMLAB_UNARY(UpdateUser, UpdateUserRequest, User)
  NORMLAB_UNARY_DONE(DeleteUser, DeleteUserRequest)
  NORMLAB_UNARY(RotateToken, RotateTokenRequest, RotateTokenResponse)
  NORMLAB_UNARY(ListAuditEvents, ListAuditEventsRequest, ListAuditEventsResponse)

  // The one call without a token: the code stands for one.
  ServerUnaryReactor* ExchangeLoginCode(CallbackServerContext* context,
                                        const v1::ExchangeLoginCodeRequest* request,
                                        v1::ExchangeLoginCodeResponse* response) override {
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    api_.Post([this, reactor, request, response, origin = CallerOf(*context).origin] {
      absl::StatusOr<v1::ExchangeLoginCodeResponse> result =
          api_.ExchangeLoginCode(*request, origin);
      if (result.ok()) *response = *std::move(result);
      reactor->Finish(ToGrpc(result.status()));
    });
    return reactor;
  }

 private:
  Api& api_;
};

#undef NORMLAB_UNARY
#undef NORMLAB_UNARY_DONE
#undef NORMLAB_UNARY_READ
#undef NORMLAB_UNARY_EMPTY

}  // namespace

std::vector<std::unique_ptr<grpc::Service>> MakeServices(Api& api, WatchLoop& watches) {
  std::vector<std::unique_ptr<grpc::Service>> services;
  services.push_back(std::make_unique<RunServiceImpl>(api, watches));
  services.push_back(std::make_unique<ExperimentServiceImpl>(api));
  services.push_back(std::make_unique<DeviceServiceImpl>(api));
  services.push_back(std::make_unique<UserServiceImpl>(api));
  services.push_back(MakeStorageService(api));
  return services;
}

}  // namespace normlab::rpc
