#include "server/domain/violations.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"

namespace normlab::domain {
namespace {

// The standard error model's name for it, so that gRPC can hand the payload on as it is.
constexpr char kTypeUrl[] = "type.googleapis.com/google.rpc.BadRequest";

}  // namespace

absl::Status InvalidFields(const std::vector<FieldViolation>& violations) {
  std::string message;
  google::rpc::BadRequest details;
  for (const FieldViolation& violation : violations) {
    absl::StrAppend(&message, message.empty() ? "" : "; ", violation.field, ": ",
                    violation.description);
    google::rpc::BadRequest::FieldViolation* added = details.add_field_violations();
    added->set_field(violation.field);
    added->set_description(violation.description);
  }
  absl::Status status = absl::InvalidArgumentError(message);
  // From a view: of Cord's constructor from a string, which is a template, clang from 18 on looks for
  // another name than GCC has given it in Debian's library.
  status.SetPayload(kTypeUrl, absl::Cord(absl::string_view(details.SerializeAsString())));
  return status;
}

std::vector<FieldViolation> Violations(const absl::Status& status) {
  std::vector<FieldViolation> violations;
  const auto payload = status.GetPayload(kTypeUrl);
  google::rpc::BadRequest details;
  if (!payload || !details.ParseFromString(std::string(*payload))) return violations;
  for (const auto& violation : details.field_violations()) {
    violations.push_back({violation.field(), violation.description()});
  }
  return violations;
}

}  // namespace normlab::domain
