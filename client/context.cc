#include "client/context.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>

namespace normlab::client {

absl::StatusOr<std::unique_ptr<ApiClient>> Context::Connect() const {
  absl::StatusOr<Endpoint> endpoint = FindEndpoint(server, data_dir);
  if (!endpoint.ok()) return endpoint.status();
  return std::make_unique<ApiClient>(*std::move(endpoint));
}

int Context::Fail(const absl::Status& status) const {
  const std::string message(status.message());
  if (json) {
    const nlohmann::ordered_json error = {
        {"error", {{"code", absl::StatusCodeToString(status.code())}, {"message", message}}}};
    terminal.PrintError(
        error.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    terminal.PrintError("normlab: " + message);
  }
  return ExitCodeOf(status);
}

int Context::FailUsage(const std::string& message) const {
  Fail(absl::InvalidArgumentError(message));
  return kExitUsage;
}

void Context::PrintJson(const google::protobuf::Message& message) const {
  terminal.Print(ToJson(message));
}

std::string ToJson(const google::protobuf::Message& message) {
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(message, &json).ok()) return "{}";
  return json;
}

}  // namespace normlab::client
