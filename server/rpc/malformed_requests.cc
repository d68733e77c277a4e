#include "server/rpc/malformed_requests.h"

#include <grpcpp/support/server_interceptor.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/strings.h"

namespace normlab::rpc {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

// One call's; gRPC calls it for one thing at a time.
class Refusal : public grpc::experimental::Interceptor {
 public:
  explicit Refusal(std::string method) : method_(std::move(method)) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE)) {
      malformed_ = methods->GetRecvMessage() == nullptr;
    }
    if (malformed_ &&
        methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      methods->ModifySendStatus(
          {grpc::StatusCode::INVALID_ARGUMENT,
           StrCat("the request of ", method_,
                  " cannot be read: it is cut off or damaged, or a text in it is not UTF-8")});
    }
    methods->Proceed();
  }

 private:
  const std::string method_;
  bool malformed_ = false;
};

class RefusalFactory : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    const bool one_request = info->type() == ServerRpcInfo::Type::UNARY ||
                             info->type() == ServerRpcInfo::Type::SERVER_STREAMING;
    // A watch reads its request itself, and is to pass nothing more for each of its events.
    const bool watch = std::string_view(info->method()).ends_with("/WatchRuns");
    return one_request && !watch ? new Refusal(info->method()) : nullptr;
  }
};

}  // namespace

void RefuseMalformedRequests(grpc::ServerBuilder& builder) {
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<RefusalFactory>());
  builder.experimental().SetInterceptorCreators(std::move(factories));
}

}  // namespace normlab::rpc
