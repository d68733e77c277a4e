#include "server/export/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace normlab::exporter {
namespace {

std::string Superscript(int number) {
  static constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = number < 0 ? "⁻" : "";
  for (const char c : std::to_string(std::abs(number))) text += kDigits[c - '0'];
  return text;
}

// 1, 2 or 5 times a power of ten, at least `rough`.
double NiceStride(double rough) {
  const double decade = std::pow(10.0, std::floor(std::log10(rough)));
  const double lead = rough / decade;
  return (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10) * decade;
}

// Evenly spaced labels: what is readable over less than a decade, where a logarithm is nearly
// straight.
std::vector<Tick> EvenTicks(double low, double high, int most) {
  std::vector<Tick> ticks;
  const double stride = NiceStride((high - low) / most);
  if (!(stride > 0)) return ticks;
  for (double index = std::ceil(low / stride); index * stride <= high; ++index) {
    ticks.push_back({index * stride, fmt::format("{:.6g}", index * stride)});
  }
  return ticks;
}

// 10 to a whole power, without the error that pow(10, -3) may have in its last bit.
double PowerOfTen(int exponent) { return std::stod(fmt::format("1e{}", exponent)); }

}  // namespace

void LogAxis::Include(double value) {
  if (!std::isfinite(value) || value <= 0) return;
  if (!HasRange()) low_ = high_ = value;
  low_ = std::min(low_, value);
  high_ = std::max(high_, value);
}

void LogAxis::Include(const Series& series) {
  for (const double value : series.values) Include(value);
}

void LogAxis::Pad() {
  if (!HasRange()) return;
  const double decades = std::log10(high_) - std::log10(low_);
  // A flat curve gets an axis around it rather than one of no height.
  const double room = std::pow(10.0, decades < 0.05 ? 0.15 : decades * 0.06);
  low_ = std::max(low_ / room, 1e-300);
  high_ = std::min(high_ * room, 1e300);
}

double LogAxis::At(double value) const {
  const double span = std::log10(high_) - std::log10(low_);
  if (span <= 0) return 0.5;
  return (std::log10(value) - std::log10(low_)) / span;
}

std::vector<Tick> LogAxis::Ticks(int most) const {
  std::vector<Tick> ticks;
  if (!HasRange() || most < 1) return ticks;
  if (high_ < low_ * 4) return EvenTicks(low_, high_, most);
  const int first = static_cast<int>(std::floor(std::log10(low_)));
  const int last = static_cast<int>(std::ceil(std::log10(high_)));
  const int every = std::max(1, (last - first + most - 1) / most);
  const bool few = last - first <= 2;  // then 2 and 5 get labels too
  for (int exponent = first; exponent <= last; ++exponent) {
    const double decade = PowerOfTen(exponent);
    for (int digit = 1; digit <= 9; ++digit) {
      const double value = decade * digit;
      if (value < low_ || value > high_) continue;
      const bool labelled = digit == 1 ? exponent % every == 0 : few && (digit == 2 || digit == 5);
      if (!labelled && every > 1 && digit != 1) continue;
      ticks.push_back({value, labelled ? DecadeLabel(value) : ""});
    }
  }
  return ticks;
}

std::vector<int64_t> StepTicks(int64_t first, int64_t last, int wanted) {
  std::vector<int64_t> ticks;
  if (last <= first || wanted < 1) return {first};
  const double nice = NiceStride(static_cast<double>(last - first) / wanted);
  const int64_t stride = std::max<int64_t>(1, std::llround(nice));
  for (int64_t step = (first + stride - 1) / stride * stride; step <= last; step += stride) {
    ticks.push_back(step);
  }
  return ticks;
}

std::string DecadeLabel(double value) {
  if (value >= 9.99e-4 && value < 9.99e4) return fmt::format("{:g}", value);
  const int exponent = static_cast<int>(std::floor(std::log10(value) + 1e-9));
  const int digit = static_cast<int>(std::lround(value / PowerOfTen(exponent)));
  return (digit == 1 ? "10" : fmt::format("{}·10", digit)) + Superscript(exponent);
}

}  // namespace normlab::exporter
