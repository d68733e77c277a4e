#include "server/domain/sweep_axis.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include "server/base/strings.h"
#include "server/domain/spec.h"
#include "server/domain/sweep.h"

namespace normlab::domain {
namespace {

constexpr int kDigits = 6;                        // significant ones of a number of a range
constexpr int kMostDigits = 17;                   // that tell any two doubles apart
constexpr double kWholeBelow = 9007199254740992;  // 2^53: above it not every integer is a double

bool IsInteger(const SettingInfo& setting) { return setting.type == SettingType::kInteger; }

// `value` rounded to six significant digits, or as many as tell it from numbers `distance` away.
double Rounded(double value, double distance) {
  if (value == 0 || !std::isfinite(value)) return value;
  double digits = kDigits;
  if (distance > 0) {
    digits += std::floor(std::log10(std::abs(value))) - std::floor(std::log10(distance));
  }
  // Infinite where the range is wider than numbers go.
  const int shown = static_cast<int>(std::clamp<double>(digits, kDigits, kMostDigits));
  char text[40];
  const char* end =
      std::to_chars(text, text + sizeof(text), value, std::chars_format::scientific, shown - 1).ptr;
  std::from_chars(text, end, value);
  return value;
}

double Within(double value, const v1::SweepRange& range) {
  return std::clamp(value, range.minimum(), range.maximum());
}

// The number a share `at` of the way from the smallest to the largest; `step` is the share to its
// neighbour.
double RangeNumber(const v1::SweepRange& range, double at, double step) {
  const double low = range.minimum(), high = range.maximum();
  if (at <= 0) return low;
  if (at >= 1) return high;
  if (!range.logarithmic()) {
    const double width = high - low;
    return Within(Rounded(low + at * width, step * width), range);
  }
  const double width = std::log(high) - std::log(low);
  const double value = std::exp(std::log(low) + at * width);
  return Within(Rounded(value, value * std::expm1(step * width)), range);
}

// The integer that a draw stands for.
double RangeInteger(const v1::SweepRange& range, double u) {
  const double low = range.minimum(), high = range.maximum();
  if (!range.logarithmic()) return std::min(high, low + std::floor(u * (high - low + 1)));
  const double first = std::log(low - .5), last = std::log(high + .5);
  return Within(std::floor(std::exp(first + u * (last - first)) + .5), range);
}

std::string NumberAsText(const SettingInfo& setting, double value) {
  if (IsInteger(setting)) return StrCat(static_cast<int64_t>(value));
  char text[40];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

}  // namespace

AxisValue::AxisValue(const SettingInfo& setting, const std::string& text) : setting_(setting.name) {
  SetFromText(spec_, setting_, text).IgnoreError();  // the caller has seen that it is accepted
  text_ = IsSet(spec_, setting_) ? ValueText(spec_, setting_) : text;
}

void AxisValue::PutInto(v1::RunSpec& spec) const {
  if (IsSet(spec_, setting_)) {
    spec = MergeSpecs(spec, spec_);
  } else {
    SetFromText(spec, setting_, text_).IgnoreError();  // "auto", which clears the field
  }
}

Axis::Axis(const v1::SweepAxis& axis, bool drawn, const std::string& place,
           std::vector<FieldViolation>& wrong)
    : setting_(FindSetting(axis.setting())), range_(axis.range()) {
  if (setting_ == nullptr) {
    const auto nearest = NearestName(axis.setting());
    wrong.push_back(
        {place + ".setting", StrCat("there is no setting \"", axis.setting(), "\"",
                                    nearest ? StrCat("; did you mean ", *nearest, "?") : "")});
    return;
  }
  if (setting_->server_only) {
    wrong.push_back({place + ".setting", StrCat(setting_->name,
                                                " says what the server does with a run and changes "
                                                "no training; give it to all runs")});
    return;
  }
  if (axis.has_range() != axis.values().empty()) {
    wrong.push_back({place, axis.has_range() ? "has values and a range; give one of the two"
                                             : "has neither values nor a range"});
    return;
  }
  if (axis.has_range()) {
    ReadRange(drawn, place + ".range", wrong);
  } else {
    ReadValues(axis, place, wrong);
  }
}

void Axis::ReadValues(const v1::SweepAxis& axis, const std::string& place,
                      std::vector<FieldViolation>& wrong) {
  std::map<std::string, int> seen;
  for (int i = 0; i < axis.values_size(); ++i) {
    const std::string field = StrCat(place, ".values[", i, "]");
    v1::RunSpec spec;
    if (absl::Status status = SetFromText(spec, setting_->name, axis.values(i)); !status.ok()) {
      wrong.push_back({field, std::string(status.message())});
      continue;
    }
    AxisValue value(*setting_, axis.values(i));
    const auto [first, is_new] = seen.emplace(value.text(), i);
    if (!is_new) {
      wrong.push_back({field, StrCat("is ", value.text(), " like values[", first->second, "]")});
    }
    values_.push_back(std::move(value));
  }
}

bool Axis::CheckRange(bool drawn, const std::string& place,
                      std::vector<FieldViolation>& wrong) const {
  const size_t before = wrong.size();
  const bool integer = IsInteger(*setting_);
  if (!integer && setting_->type != SettingType::kNumber) {
    wrong.push_back({place, StrCat(setting_->name, " is no number; give values")});
    return false;
  }
  for (const auto& [name, value] :
       {std::pair("minimum", range_.minimum()), std::pair("maximum", range_.maximum())}) {
    const std::string field = StrCat(place, ".", name);
    if (integer && (value != std::floor(value) || std::abs(value) > kWholeBelow)) {
      wrong.push_back({field, StrCat(setting_->name, " takes integers up to 2^53")});
      continue;
    }
    v1::RunSpec spec;
    const absl::Status status =
        std::isfinite(value) ? SetFromText(spec, setting_->name, NumberAsText(*setting_, value))
                             : absl::InvalidArgumentError("is not a finite number");
    if (!status.ok()) wrong.push_back({field, std::string(status.message())});
  }
  if (wrong.size() > before) return false;
  if (range_.minimum() >= range_.maximum()) {
    wrong.push_back({place, "the smallest number is not below the largest"});
  } else if (range_.logarithmic() && range_.minimum() <= 0) {
    wrong.push_back({place + ".minimum", "must be above 0 where logarithms are evenly spaced"});
  }
  if (!drawn && range_.count() < 2) {
    wrong.push_back({place + ".count", "must be at least 2: both ends are included"});
  } else if (!drawn && range_.count() > kLargestExperiment) {
    wrong.push_back({place + ".count", StrCat(range_.count(), " runs are more than the ",
                                              kLargestExperiment, " of an experiment")});
  }
  return wrong.size() == before;
}

void Axis::ReadRange(bool drawn, const std::string& place, std::vector<FieldViolation>& wrong) {
  if (!CheckRange(drawn, place, wrong) || drawn) return;
  AddRangeValues(place, wrong);
}

void Axis::AddRangeValues(const std::string& place, std::vector<FieldViolation>& wrong) {
  const double step = 1.0 / (range_.count() - 1);
  for (int i = 0; i < range_.count(); ++i) {
    double number = RangeNumber(range_, i == range_.count() - 1 ? 1 : i * step, step);
    if (IsInteger(*setting_)) number = std::round(number);
    AxisValue value(*setting_, NumberAsText(*setting_, number));
    if (!values_.empty() && values_.back().text() == value.text()) {
      wrong.push_back(
          {place + ".count", StrCat("too many: two neighbours are both ", value.text())});
      return;
    }
    values_.push_back(std::move(value));
  }
}

AxisValue Axis::At(double u) const {
  if (!values_.empty()) {
    const auto count = static_cast<double>(values_.size());
    return values_[std::min(values_.size() - 1, static_cast<size_t>(u * count))];
  }
  // A draw has no neighbour; the other end of the range stands in for one.
  constexpr double kStep = 1;
  const double number =
      IsInteger(*setting_) ? RangeInteger(range_, u) : RangeNumber(range_, u, kStep);
  return AxisValue(*setting_, NumberAsText(*setting_, number));
}

}  // namespace normlab::domain
