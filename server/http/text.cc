#include "server/http/text.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
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

bool IsUtf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    const int following = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    // 0x80..0xbf cannot lead; 0xc0 and 0xc1 would be overlong; from 0xf5 on, above U+10FFFF.
    if (lead < 0xc2 || lead > 0xf4 || text.size() - i < static_cast<size_t>(following))
      return false;
    uint32_t point = lead & (0x3f >> following);
    for (int k = 0; k < following; ++k) {
      const auto next = static_cast<unsigned char>(text[i++]);
      if ((next & 0xc0) != 0x80) return false;
      point = point << 6 | (next & 0x3f);
    }
    const bool overlong = (following == 2 && point < 0x800) || (following == 3 && point < 0x10000);
    if (overlong || (point >= 0xd800 && point <= 0xdfff) || point > 0x10ffff) return false;
  }
  return true;
}

}  // namespace normlab::http
