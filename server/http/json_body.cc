#include "server/http/json_body.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "google/protobuf/util/json_util.h"
#include "server/http/json_check.h"
#include "spdlog/spdlog.h"

namespace normlab::http {

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (!status.ok()) {
    spdlog::error("{} does not print as JSON: {}", message.GetTypeName(), status.ToString());
    return "{}";
  }
  return json;
}

absl::StatusOr<nlohmann::json> ParseObject(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return absl::InvalidArgumentError("the body is empty, a JSON object is needed");
  }
  nlohmann::json object;
  try {
    object = nlohmann::json::parse(body);
  } catch (const nlohmann::json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: ...": the start is the
    // library's own business.
    const std::string_view what = error.what();
    const size_t bracket = what.find("] ");
    return absl::InvalidArgumentError(
        fmt::format("malformed JSON: {}", bracket == what.npos ? what : what.substr(bracket + 2)));
  }
  if (!object.is_object()) {
    return absl::InvalidArgumentError("the body must be a JSON object");
  }
  return object;
}

absl::Status FillFromJson(const nlohmann::json& object, std::string_view prefix,
                          google::protobuf::Message& message) {
  const std::vector<domain::FieldViolation> violations =
      CheckJson(object, *message.GetDescriptor(), prefix);
  if (!violations.empty()) return domain::InvalidFields(violations);
  const auto status = google::protobuf::util::JsonStringToMessage(object.dump(), &message);
  // Only what CheckJson does not look into, such as the text of a timestamp.
  if (!status.ok()) return absl::InvalidArgumentError(std::string(status.message()));
  return absl::OkStatus();
}

absl::Status FromJson(std::string_view body, google::protobuf::Message& message) {
  const absl::StatusOr<nlohmann::json> object = ParseObject(body);
  if (!object.ok()) return object.status();
  return FillFromJson(*object, "", message);
}

}  // namespace normlab::http
