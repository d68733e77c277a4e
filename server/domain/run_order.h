// The order of run lists, as in AIP-132: "final_loss, created desc".
#ifndef NORMLAB_SERVER_DOMAIN_RUN_ORDER_H_
#define NORMLAB_SERVER_DOMAIN_RUN_ORDER_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/domain/filter_fields.h"

namespace normlab::domain {

struct RunOrder {
  const FilterField* field = nullptr;
  bool falling = false;
};

// Fields in the order of their weight; none for an empty text. INVALID_ARGUMENT names the field
// `order_by` and says what is wrong.
absl::StatusOr<std::vector<RunOrder>> ParseRunOrder(std::string_view text);

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_RUN_ORDER_H_
