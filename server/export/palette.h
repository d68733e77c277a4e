// Colours of curves, the same in the terminal, in SVG and on the dashboard. The first three are the
// article's; the eight stay apart for the common kinds of colour blindness.
#ifndef NORMLAB_SERVER_EXPORT_PALETTE_H_
#define NORMLAB_SERVER_EXPORT_PALETTE_H_

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace normlab::exporter {

inline constexpr std::array<std::string_view, 8> kPalette = {
    "#2563eb", "#dc5a3a", "#138a72", "#a05ac8", "#c39a0b", "#5b6470", "#0ea5c6", "#8c4a2f"};

// The colour of the index-th curve, unless it brings its own.
inline std::string CurveColour(const std::string& own, size_t index) {
  const bool valid = own.size() == 7 && own[0] == '#' &&
                     own.find_first_not_of("0123456789abcdefABCDEF", 1) == std::string::npos;
  return valid ? own : std::string(kPalette[index % kPalette.size()]);
}

}  // namespace normlab::exporter

#endif  // NORMLAB_SERVER_EXPORT_PALETTE_H_
