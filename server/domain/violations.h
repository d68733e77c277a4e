// Wrong fields of a request, carried by an absl::Status to whichever wire tells the caller.
#ifndef NORMLAB_SERVER_DOMAIN_VIOLATIONS_H_
#define NORMLAB_SERVER_DOMAIN_VIOLATIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace normlab::domain {

// One wrong field and how to put it right.
struct FieldViolation {
  std::string field;        // as declared: "spec.batch_size"
  std::string description;  // "0 is below the smallest value, 1"
  bool operator==(const FieldViolation&) const = default;
};

// INVALID_ARGUMENT whose message lists every violation and which carries them for the wire.
absl::Status InvalidFields(const std::vector<FieldViolation>& violations);

// The violations that `status` carries; none if it carries none.
std::vector<FieldViolation> Violations(const absl::Status& status);

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_VIOLATIONS_H_
