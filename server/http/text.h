// Small operations on text. Abseil's take absl::string_view, which Debian's build does not make
// std::string_view, as everything else here has it.
#ifndef NORMLAB_SERVER_HTTP_TEXT_H_
#define NORMLAB_SERVER_HTTP_TEXT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/domain/utf8.h"

namespace normlab::http {

// The pieces between separators; "" has one, the empty one.
std::vector<std::string_view> Split(std::string_view text, char separator);
// Without blanks and tabs around it.
std::string_view Trim(std::string_view text);
// ASCII letters only.
std::string Lower(std::string_view text);
bool EqualsIgnoreCase(std::string_view a, std::string_view b);
bool StartsWithIgnoreCase(std::string_view text, std::string_view start);
std::string_view WithoutSuffix(std::string_view text, std::string_view suffix);
// At most `size` bytes of well-formed UTF-8, for messages that quote what a client sent.
std::string Shortened(std::string_view text, size_t size);
// The whole text as a number, with "NaN", "Infinity" and "-Infinity"; nothing if it is none.
std::optional<double> ToDouble(std::string_view text);

// ", did you mean layers?" when one of the known names, in snake_case, is near; else "".
std::string DidYouMean(std::string_view name, const std::vector<std::string>& known);
// snake_case of a lowerCamelCase name; snake_case stays.
std::string SnakeCase(std::string_view name);

using domain::IsUtf8;

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_TEXT_H_
