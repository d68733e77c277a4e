#include "server/domain/run_order.h"

#include <algorithm>
#include <string>

#include "server/base/strings.h"
#include "server/domain/nearest.h"
#include "server/domain/violations.h"

namespace normlab::domain {
namespace {

constexpr size_t kMostFields = 8;

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

absl::Status Wrong(std::string description) {
  return InvalidFields({{"order_by", std::move(description)}});
}

// One "FIELD", "FIELD asc" or "FIELD desc".
absl::StatusOr<RunOrder> ParseOne(std::string_view part) {
  RunOrder order;
  const size_t space = part.find_first_of(" \t\n");
  const std::string_view name = part.substr(0, space);
  if (name.empty()) return Wrong("has an empty field; separate fields by one comma");
  if (space != std::string_view::npos) {
    const std::string direction = Underscored(Trimmed(part.substr(space)));
    order.falling = direction == "desc";
    if (!order.falling && direction != "asc") {
      return Wrong("after a field there can be desc or asc, then a comma and the next field");
    }
  }
  order.field = FindFilterField(name);
  if (order.field == nullptr) return Wrong(NoSuchField(name));
  if (order.field->type == FilterType::kLabels) {
    return Wrong("a run has many labels, which give no order");
  }
  return order;
}

}  // namespace

absl::StatusOr<std::vector<RunOrder>> ParseRunOrder(std::string_view text) {
  std::vector<RunOrder> orders;
  if (Trimmed(text).empty()) return orders;
  while (true) {
    const size_t comma = text.find(',');
    absl::StatusOr<RunOrder> order = ParseOne(Trimmed(text.substr(0, comma)));
    if (!order.ok()) return order.status();
    const bool twice = std::any_of(orders.begin(), orders.end(), [&](const RunOrder& earlier) {
      return earlier.field == order->field;
    });
    if (twice) return Wrong(StrCat(order->field->name, " is given twice"));
    orders.push_back(*order);
    if (orders.size() > kMostFields) return Wrong(StrCat("has more than ", kMostFields, " fields"));
    if (comma == std::string_view::npos) return orders;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace normlab::domain
