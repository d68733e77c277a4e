// Rules that requests of several kinds share.
#ifndef NORMLAB_SERVER_APP_REQUESTS_H_
#define NORMLAB_SERVER_APP_REQUESTS_H_

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/app/api.h"
#include "server/base/strings.h"
#include "server/domain/violations.h"

namespace normlab::app {

inline absl::Status MayChange(const Principal& principal) {
  if (principal.role == "member" || principal.role == "admin") return absl::OkStatus();
  return absl::PermissionDeniedError(
      StrCat(principal.user, " is a ", principal.role, " and may only look"));
}

// `what` ends the sentence: "only an admin may ...".
inline absl::Status MustBeAdmin(const Principal& principal, std::string_view what) {
  if (principal.role == "admin") return absl::OkStatus();
  return absl::PermissionDeniedError(
      StrCat(principal.user, " is a ", principal.role, "; only an admin ", what));
}

inline absl::StatusOr<int> PageSize(int32_t asked) {
  constexpr int kDefault = 50, kLargest = 1000;
  if (asked < 0) {
    return domain::InvalidFields({{"page_size", StrCat(asked, " is negative; use 1 to 1000")}});
  }
  return asked == 0 ? kDefault : std::min(asked, kLargest);
}

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_REQUESTS_H_
