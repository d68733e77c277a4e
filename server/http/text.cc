#include "server/http/text.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "server/domain/nearest.h"

namespace normlab::http {
namespace {

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
char LowerCase(char c) { return IsUpper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), LowerCase);
  return lower;
}

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return LowerCase(x) == LowerCase(y); });
}

bool StartsWithIgnoreCase(std::string_view text, std::string_view start) {
  return EqualsIgnoreCase(text.substr(0, start.size()), start);
}

std::string_view WithoutSuffix(std::string_view text, std::string_view suffix) {
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return text;
}

std::string Shortened(std::string_view text, size_t size) {
  if (text.size() <= size) return std::string(text);
  // Back to the start of the character that would be cut in two.
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return std::string(text.substr(0, size)) + "...";
}

std::optional<double> ToDouble(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& known) {
  // Longer than any name: not a slip, and not worth the comparison.
  if (name.size() > 64) return "";
  const std::optional<std::string> nearest = domain::NearestOf(SnakeCase(name), known);
  return nearest ? ", did you mean " + *nearest + "?" : "";
}

std::string SnakeCase(std::string_view name) {
  std::string snake;
  for (const char c : name) {
    if (IsUpper(c)) snake += '_';
    snake += LowerCase(c);
  }
  return snake;
}

}  // namespace normlab::http
