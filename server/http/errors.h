// Errors as HTTP tells them:
//
//   {"error":{"code":400,"status":"INVALID_ARGUMENT","message":"...",
//             "details":[{"field":"spec.heads","description":"..."}]}}
#ifndef NORMLAB_SERVER_HTTP_ERRORS_H_
#define NORMLAB_SERVER_HTTP_ERRORS_H_

#include <string>

#include "absl/status/status.h"
#include "server/http/answer.h"

namespace normlab::http {

// The HTTP status of a canonical code, as google.rpc.Code maps them.
int HttpStatus(absl::StatusCode code);

std::string ErrorJson(int http_status, const absl::Status& status);

Answer ErrorAnswer(const absl::Status& status);
// For what HTTP can say better than the canonical codes: 405, 413, 421, 431.
Answer ErrorAnswer(int http_status, const absl::Status& status);

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_ERRORS_H_
