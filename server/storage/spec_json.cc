#include "server/storage/spec_json.h"

#include <google/protobuf/util/json_util.h>

namespace normlab::storage {

absl::StatusOr<std::string> SpecToJson(const v1::RunSpec& spec) {
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(spec, &json);
  if (!status.ok()) return absl::InternalError(status.ToString());
  return json;
}

absl::Status SpecFromJson(const std::string& json, v1::RunSpec& spec) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &spec, options);
  return status.ok() ? absl::OkStatus() : absl::DataLossError(status.ToString());
}

}  // namespace normlab::storage
