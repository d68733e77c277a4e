#include "server/http/errors.h"

#include <string>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "server/domain/violations.h"

namespace normlab::http {

int HttpStatus(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:  // INTERNAL, UNKNOWN, DATA_LOSS
      return 500;
  }
}

std::string ErrorJson(int http_status, const absl::Status& status) {
  nlohmann::ordered_json error;
  error["code"] = http_status;
  error["status"] = absl::StatusCodeToString(status.code());
  error["message"] = status.message();
  nlohmann::ordered_json details = nlohmann::ordered_json::array();
  for (const domain::FieldViolation& violation : domain::Violations(status)) {
    details.push_back({{"field", violation.field}, {"description", violation.description}});
  }
  if (!details.empty()) error["details"] = std::move(details);
  const nlohmann::ordered_json whole = {{"error", std::move(error)}};
  return whole.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Answer ErrorAnswer(const absl::Status& status) {
  return ErrorAnswer(HttpStatus(status.code()), status);
}

Answer ErrorAnswer(int http_status, const absl::Status& status) {
  Answer answer = JsonAnswer(ErrorJson(http_status, status));
  answer.status = http_status;
  if (http_status == 401) answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

}  // namespace normlab::http
