#include "client/term/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace normlab::client {
namespace {

struct Range {
  char32_t first, last;
};

// Characters that take two columns: East Asian wide and the emoji of the basic plane.
constexpr std::array<Range, 27> kWide = {
    {{0x1100, 0x115f},   {0x231a, 0x231b},  {0x23e9, 0x23ec}, {0x23f0, 0x23f0}, {0x23f3, 0x23f3},
     {0x25fd, 0x25fe},   {0x2614, 0x2615},  {0x2648, 0x2653}, {0x267f, 0x267f}, {0x2693, 0x2693},
     {0x26a1, 0x26a1},   {0x26aa, 0x26ab},  {0x26bd, 0x26be}, {0x26c4, 0x26c5}, {0x26ce, 0x26ce},
     {0x26d4, 0x26d4},   {0x2705, 0x2705},  {0x274c, 0x274c}, {0x2e80, 0x303e}, {0x3041, 0xa4cf},
     {0xac00, 0xd7a3},   {0xf900, 0xfaff},  {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6},
     {0x1f300, 0x1f9ff}, {0x20000, 0x3fffd}}};

// Characters that take none: combining marks, joiners, variation selectors.
constexpr std::array<Range, 6> kZero = {{{0x0300, 0x036f},
                                         {0x200b, 0x200f},
                                         {0x202a, 0x202e},
                                         {0x2060, 0x2069},
                                         {0xfe00, 0xfe0f},
                                         {0xfeff, 0xfeff}}};

template <size_t N>
bool In(const std::array<Range, N>& ranges, char32_t c) {
  for (const Range& range : ranges) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

int WidthOf(char32_t c) { return In(kZero, c) ? 0 : In(kWide, c) ? 2 : 1; }

// Decodes one character at `i` and moves on; broken UTF-8 gives U+FFFD for one byte.
char32_t Decode(std::string_view text, size_t& i) {
  const auto byte = static_cast<unsigned char>(text[i++]);
  if (byte < 0x80) return byte;
  const int more = byte >= 0xf0 && byte < 0xf5   ? 3
                   : byte >= 0xe0 && byte < 0xf0 ? 2
                   : byte >= 0xc2 && byte < 0xe0 ? 1
                                                 : 0;
  if (more == 0 || i + more > text.size()) return 0xfffd;
  char32_t value = byte & (0x3f >> more);
  for (int k = 0; k < more; ++k) {
    const auto next = static_cast<unsigned char>(text[i + k]);
    if ((next & 0xc0) != 0x80) return 0xfffd;
    value = (value << 6) | (next & 0x3f);
  }
  const bool overlong = (more == 2 && value < 0x800) || (more == 3 && value < 0x10000);
  if (overlong || (value >= 0xd800 && value <= 0xdfff) || value > 0x10ffff) return 0xfffd;
  i += more;
  return value;
}

// Length of a colour sequence (ESC [ ... m) at `i`, or 0.
size_t EscapeLength(std::string_view text, size_t i) {
  if (text[i] != '\x1b' || i + 1 >= text.size() || text[i + 1] != '[') return 0;
  const size_t end = text.find_first_not_of("0123456789;", i + 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 - i : 0;
}

}  // namespace

std::string Clean(std::string_view text) {
  std::string clean;
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = Decode(text, i);
    // C0, DEL, C1, and the marks that reverse the direction of writing.
    const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
                         (c >= 0x2066 && c <= 0x2069);
    if (control) {
      clean += c == '\t' || c == '\n' ? " " : "?";
    } else if (c == 0xfffd) {
      clean += "\xEF\xBF\xBD";
    } else {
      clean += text.substr(start, i - start);
    }
  }
  return clean;
}

int DisplayWidth(std::string_view text) {
  int width = 0;
  for (size_t i = 0; i < text.size();) {
    if (const size_t escape = EscapeLength(text, i); escape > 0) {
      i += escape;
    } else {
      width += WidthOf(Decode(text, i));
    }
  }
  return width;
}

std::string Pad(std::string_view text, int width, Align align) {
  const int missing = width - DisplayWidth(text);
  const std::string space(missing > 0 ? missing : 0, ' ');
  return align == Align::kLeft ? std::string(text) + space : space + std::string(text);
}

std::string Fit(std::string_view text, int width, Align align) {
  if (width <= 0) return "";
  if (DisplayWidth(text) <= width) return Pad(text, width, align);
  std::string cut;
  int used = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const int columns = WidthOf(Decode(text, i));
    if (used + columns > width - 1) break;
    used += columns;
    cut += text.substr(start, i - start);
  }
  return Pad(cut + "…", width, align);
}

std::vector<std::string> Wrap(std::string_view text, int width) {
  std::vector<std::string> lines(1);
  bool empty = true;  // no word on the last line yet
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find(' ', start), text.size());
    const std::string_view word = text.substr(start, end - start);
    start = end + 1;
    if (!empty && width > 0 && DisplayWidth(lines.back()) + 1 + DisplayWidth(word) > width) {
      lines.emplace_back("  ");
      empty = true;
    }
    if (!empty) lines.back() += ' ';
    lines.back() += word;
    empty = false;
  }
  return lines;
}

std::string DurationText(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 0.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(std::min(seconds, 1e15)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
  return fmt::format("{} d {} h", whole / 86400, whole / 3600 % 24);
}

std::string BytesText(int64_t bytes) {
  static constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return value < 10 && unit > 0 ? fmt::format("{:.1f} {}", value, kUnits[unit])
                                : fmt::format("{:.0f} {}", value, kUnits[unit]);
}

std::string CountText(int64_t count) {
  std::string digits = std::to_string(count);
  const int first = count < 0 ? 1 : 0;
  for (int i = static_cast<int>(digits.size()) - 3; i > first; i -= 3) digits.insert(i, ",");
  return digits;
}

}  // namespace normlab::client
