#include "server/storage/spec_json.h"

#include <google/protobuf/util/json_util.h>

namespace normlab::storage {
namespace {

absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message) {
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json);
  if (!status.ok()) return absl::InternalError(status.ToString());
  return json;
}

absl::Status FromJson(const std::string& json, google::protobuf::Message& message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &message, options);
  return status.ok() ? absl::OkStatus() : absl::DataLossError(status.ToString());
}

}  // namespace

absl::StatusOr<std::string> SpecToJson(const v1::RunSpec& spec) { return ToJson(spec); }
absl::StatusOr<std::string> SweepToJson(const v1::Sweep& sweep) { return ToJson(sweep); }

absl::Status SpecFromJson(const std::string& json, v1::RunSpec& spec) {
  return FromJson(json, spec);
}
absl::Status SweepFromJson(const std::string& json, v1::Sweep& sweep) {
  return FromJson(json, sweep);
}

}  // namespace normlab::storage
