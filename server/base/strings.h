// Text from pieces. Debian 12's Abseil has a string_view of its own that does not take a
// std::string_view; these take both, also where the two are one type.
//
//   return absl::NotFoundError(StrCat("there is no run ", id));
#ifndef NORMLAB_SERVER_BASE_STRINGS_H_
#define NORMLAB_SERVER_BASE_STRINGS_H_

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace normlab {

template <typename T>
decltype(auto) TextPiece(const T& value) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return absl::string_view(value.data(), value.size());
  } else {
    return (value);
  }
}

inline std::string_view StdView(absl::string_view text) { return {text.data(), text.size()}; }

template <typename... Args>
std::string StrCat(const Args&... args) {
  return absl::StrCat(TextPiece(args)...);
}

template <typename... Args>
void StrAppend(std::string* text, const Args&... args) {
  absl::StrAppend(text, TextPiece(args)...);
}

}  // namespace normlab

#endif  // NORMLAB_SERVER_BASE_STRINGS_H_
