// What is wrong with a JSON object that should be a message, field by field. Protobuf's own parser
// stops at the first fault and names it in its own words.
#ifndef NORMLAB_SERVER_HTTP_JSON_CHECK_H_
#define NORMLAB_SERVER_HTTP_JSON_CHECK_H_

#include <string_view>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "nlohmann/json.hpp"
#include "server/domain/violations.h"

namespace normlab::http {

// Unknown fields (with the nearest real name), fields given in both spellings and values of the
// wrong type in `object`, named from `prefix` on: "spec.layers", "runs[1].spec.heads".
std::vector<domain::FieldViolation> CheckJson(const nlohmann::json& object,
                                              const google::protobuf::Descriptor& type,
                                              std::string_view prefix);

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_JSON_CHECK_H_
