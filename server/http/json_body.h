// Resources as standard proto3 JSON: lowerCamelCase out, both spellings in, and whatever is wrong
// with what came in said by field, all of it at once.
//
//   v1::Run run;
//   if (absl::Status status = FromJson(body, run); !status.ok()) return status;
//
// Pure functions, any thread.
#ifndef NORMLAB_SERVER_HTTP_JSON_BODY_H_
#define NORMLAB_SERVER_HTTP_JSON_BODY_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "nlohmann/json.hpp"

namespace normlab::http {

// One line, without white space. Plain fields are there even when empty, so that a script need not
// know which are left out; optional ones only when set.
std::string ToJson(const google::protobuf::Message& message);

// The JSON object that `body` is. INVALID_ARGUMENT says where it is malformed.
absl::StatusOr<nlohmann::json> ParseObject(std::string_view body);

// Fills `message` from `object`. Unknown fields and wrong types are INVALID_ARGUMENT by name as
// declared, such as "spec.batch_size", after `prefix` ("overrides.").
absl::Status FillFromJson(const nlohmann::json& object, std::string_view prefix,
                          google::protobuf::Message& message);

// Both of them.
absl::Status FromJson(std::string_view body, google::protobuf::Message& message);

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_JSON_BODY_H_
