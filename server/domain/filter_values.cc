#include "server/domain/filter_values.h"

#include <charconv>
#include <chrono>
#include <limits>
#include <system_error>
#include <vector>

#include "server/base/strings.h"
#include "server/domain/nearest.h"

namespace normlab::domain {
namespace {

constexpr int64_t kMicrosOfSecond = 1'000'000;
constexpr int64_t kMicrosOfDay = 86'400 * kMicrosOfSecond;
constexpr size_t kMicrosDigits = 6;
constexpr char kStatePrefix[] = "state_";

// A piece of text read from the front.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool done() const { return text_.empty(); }
  bool Take(char wanted) {
    if (text_.empty() || text_.front() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }
  // Exactly `digits` digits.
  bool Number(size_t digits, int& value) {
    if (text_.size() < digits) return false;
    const std::string_view part = Digits();
    if (part.size() != digits) return false;
    std::from_chars(part.data(), part.data() + part.size(), value);
    text_.remove_prefix(digits);
    return true;
  }
  std::string_view TakeDigits() {
    const std::string_view digits = Digits();
    text_.remove_prefix(digits.size());
    return digits;
  }

 private:
  std::string_view Digits() const { return text_.substr(0, text_.find_first_not_of("0123456789")); }
  std::string_view text_;
};

// ".25", if there is one: microseconds, and how many microseconds its last digit stands for.
bool ReadFraction(Reader& reader, int64_t& micros, int64_t& unit) {
  micros = 0;
  unit = kMicrosOfSecond;
  if (!reader.Take('.')) return true;
  const std::string_view digits = reader.TakeDigits();
  if (digits.empty()) return false;
  for (size_t i = 0; i < digits.size() && i < kMicrosDigits; ++i) {
    unit /= 10;
    micros += unit * (digits[i] - '0');
  }
  return true;
}

// "Z" or "+01:00".
bool ReadOffset(Reader& reader, int64_t& minutes) {
  minutes = 0;
  if (reader.Take('Z') || reader.Take('z')) return true;
  const bool east = reader.Take('+');
  if (!east && !reader.Take('-')) return false;
  int hour = 0, minute = 0;
  if (!reader.Number(2, hour) || !reader.Take(':') || !reader.Number(2, minute)) return false;
  if (hour > 23 || minute > 59) return false;
  minutes = (east ? 1 : -1) * (60 * hour + minute);
  return true;
}

std::string ReadNumber(std::string_view text, FilterValue& value) {
  const bool minus = text.starts_with('-');
  std::string_view digits = text;
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  const std::string name = Underscored(digits.substr(minus));
  if (name == "nan" && !minus) {
    value.number = std::numeric_limits<double>::quiet_NaN();
    return "";
  }
  if (name == "infinity" || name == "inf") {
    value.number = (minus ? -1 : 1) * std::numeric_limits<double>::infinity();
    return "";
  }
  const char* const end = digits.data() + digits.size();
  int64_t whole = 0;
  if (const auto [stop, error] = std::from_chars(digits.data(), end, whole);
      error == std::errc() && stop == end) {
    value.integer = whole;
    value.number = static_cast<double>(whole);
    return "";
  }
  const bool begins = digits.find_first_of("0123456789.") <= 1;  // not "nan(0)"
  const auto [stop, error] = std::from_chars(digits.data(), end, value.number);
  if (error == std::errc::result_out_of_range) return "is too large, or too near to 0";
  if (!begins || error != std::errc() || stop != end) {
    return "is not a number, such as 12, 0.1, 1e-3, NaN, Infinity";
  }
  return "";
}

std::string ReadSwitch(std::string_view text, FilterValue& value) {
  const std::string lower = Underscored(text);
  for (const char* yes : {"true", "yes", "on", "1"}) {
    if (lower == yes) {
      value.flag = true;
      return "";
    }
  }
  for (const char* no : {"false", "no", "off", "0"}) {
    if (lower == no) {
      value.flag = false;
      return "";
    }
  }
  return "is neither true nor false";
}

std::vector<std::string> StateNames() {
  std::vector<std::string> names;
  const auto* states = v1::Run::State_descriptor();
  for (int i = 0; i < states->value_count(); ++i) {
    const auto* state = states->value(i);
    if (state->number() == v1::Run::STATE_UNSPECIFIED) continue;
    names.push_back(Underscored(state->name()).substr(sizeof(kStatePrefix) - 1));
  }
  return names;
}

std::string ReadState(std::string_view text, FilterValue& value) {
  if (const auto state = ParseStateName(text)) {
    value.state = *state;
    return "";
  }
  const std::vector<std::string> names = StateNames();
  if (const auto nearest = NearestOf(text, names)) {
    return StrCat("is no state; did you mean ", *nearest, "?");
  }
  std::string all;
  for (const std::string& name : names) StrAppend(&all, all.empty() ? "" : ", ", name);
  return StrCat("is no state; there is ", all);
}

}  // namespace

std::optional<v1::Run::State> ParseStateName(std::string_view text) {
  std::string name = Underscored(text);
  if (name.starts_with(kStatePrefix)) name.erase(0, sizeof(kStatePrefix) - 1);
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  v1::Run::State state;
  if (!v1::Run::State_Parse("STATE_" + name, &state) || state == v1::Run::STATE_UNSPECIFIED) {
    return std::nullopt;
  }
  return state;
}

bool ParseTimeSpan(std::string_view text, int64_t& first, int64_t& last) {
  Reader reader(text);
  int year = 0, month = 0, day = 0;
  if (!reader.Number(4, year) || !reader.Take('-') || !reader.Number(2, month) ||
      !reader.Take('-') || !reader.Number(2, day)) {
    return false;
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return false;
  first = std::chrono::sys_days(date).time_since_epoch().count() * kMicrosOfDay;
  last = first + kMicrosOfDay - 1;
  if (reader.done()) return true;
  int hour = 0, minute = 0, second = 0;
  int64_t micros = 0, unit = 0, offset = 0;
  if (!reader.Take('T') && !reader.Take('t') && !reader.Take(' ')) return false;
  if (!reader.Number(2, hour) || !reader.Take(':') || !reader.Number(2, minute) ||
      !reader.Take(':') || !reader.Number(2, second) || !ReadFraction(reader, micros, unit) ||
      !ReadOffset(reader, offset) || !reader.done()) {
    return false;
  }
  if (hour > 23 || minute > 59 || second > 59) return false;
  first += ((hour * 60 + minute - offset) * 60 + second) * kMicrosOfSecond + micros;
  last = first + unit - 1;
  return true;
}

std::string ReadFilterValue(const FilterField& field, std::string_view text, FilterValue& value) {
  switch (field.type) {
    case FilterType::kText:
    case FilterType::kLabels:
      value.text = std::string(text);
      return "";
    case FilterType::kNumber:
      return ReadNumber(text, value);
    case FilterType::kTime:
      return ParseTimeSpan(text, value.first, value.last)
                 ? ""
                 : "is not a time, such as 2026-11-30 or 2026-11-30T12:00:00Z";
    case FilterType::kSwitch:
      return ReadSwitch(text, value);
    case FilterType::kState:
      break;
  }
  return ReadState(text, value);
}

}  // namespace normlab::domain
