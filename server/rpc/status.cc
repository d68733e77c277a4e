#include "server/rpc/status.h"

#include "absl/strings/cord.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace normlab::rpc {

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::string message(status.message());
  google::rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_reason(absl::StatusCodeToString(status.code()));
  info.set_domain("normlab");
  details.add_details()->PackFrom(info);
  status.ForEachPayload([&](absl::string_view type_url, const absl::Cord& payload) {
    google::protobuf::Any& any = *details.add_details();
    any.set_type_url(std::string(type_url));
    any.set_value(std::string(payload));
  });
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message,
                      details.SerializeAsString());
}

Caller CallerOf(const grpc::ServerContextBase& context) {
  static constexpr char kScheme[] = "Bearer ";
  Caller caller;
  caller.origin = context.peer();
  if (caller.origin.starts_with("unix")) caller.origin = "unix socket";
  const auto found = context.client_metadata().find("authorization");
  if (found == context.client_metadata().end()) return caller;
  const std::string value(found->second.data(), found->second.size());
  if (value.starts_with(kScheme)) caller.token = value.substr(sizeof(kScheme) - 1);
  return caller;
}

}  // namespace normlab::rpc
