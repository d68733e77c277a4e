#include "client/api_error.h"

#include <fmt/format.h>

#include <string>

#include "client/term/text.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace normlab::client {
namespace {

// Lines of BadRequest details; empty when there are none.
std::string ViolationLines(const std::string& serialized_details) {
  google::rpc::Status details;
  if (!details.ParseFromString(serialized_details)) return "";
  std::string lines;
  for (const google::protobuf::Any& detail : details.details()) {
    google::rpc::BadRequest bad_request;
    if (!detail.UnpackTo(&bad_request)) continue;
    for (const auto& violation : bad_request.field_violations()) {
      if (!lines.empty()) lines += '\n';
      lines += fmt::format("{}: {}", Clean(violation.field()), Clean(violation.description()));
    }
  }
  return lines;
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  std::string message = ViolationLines(status.error_details());
  if (message.empty()) message = Clean(status.error_message());
  switch (code) {
    case absl::StatusCode::kUnavailable:
      message = "no server answers: " + message;
      break;
    case absl::StatusCode::kDeadlineExceeded:
      message = "the server did not answer in time";
      break;
    case absl::StatusCode::kUnauthenticated:
      message += "\nthe token was not accepted; see: normlab doctor";
      break;
    case absl::StatusCode::kUnimplemented:
      message = "the server does not know this call; is it older than this program?";
      break;
    default:
      break;
  }
  return absl::Status(code, message);
}

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitNoServer;
    default:
      return kExitRefused;
  }
}

}  // namespace normlab::client
