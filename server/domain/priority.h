// The classes of the queue: every high run goes before every normal one, and these before low ones.
#ifndef NORMLAB_SERVER_DOMAIN_PRIORITY_H_
#define NORMLAB_SERVER_DOMAIN_PRIORITY_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace normlab::domain {

inline constexpr std::string_view kPriorities = "high, normal, low";  // for messages

// 1, 0, -1; an empty name is normal. Nothing for any other word.
constexpr std::optional<int> PriorityNumber(std::string_view name) {
  if (name == "high") return 1;
  if (name.empty() || name == "normal") return 0;
  if (name == "low") return -1;
  return std::nullopt;
}

constexpr std::string_view PriorityName(int64_t number) {
  return number > 0 ? "high" : number < 0 ? "low" : "normal";
}

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_PRIORITY_H_
