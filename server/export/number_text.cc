#include "server/export/number_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace normlab::exporter {
namespace {

std::string NonFiniteText(double value) {
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

}  // namespace

std::string NumberText(double value) {
  if (!std::isfinite(value)) return NonFiniteText(value);
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, end);
}

std::string ShortNumberText(double value) {
  if (!std::isfinite(value)) return NonFiniteText(value);
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-4 || size >= 1e7)) {
    // Two digits of exponent are printf's habit, not people's.
    std::string text = fmt::format("{:.2e}", value);
    const size_t mark = text.find('e');
    return fmt::format("{}e{}", text.substr(0, mark), std::stoi(text.substr(mark + 1)));
  }
  if (size >= 1000) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

}  // namespace normlab::exporter
