#include "server/export/points_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace normlab::exporter {
namespace {

template <typename Number>
void AppendDigits(std::string& json, Number number) {
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof(digits), number);
  json.append(digits, end.ptr);
}

void AppendValue(std::string& json, double value) {
  if (std::isfinite(value)) {
    AppendDigits(json, value);
  } else if (std::isnan(value)) {
    json += "\"NaN\"";
  } else {
    json += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  }
}

}  // namespace

void AppendJsonString(std::string& json, std::string_view text) {
  json += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (c == '\n') {
      json += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      json += fmt::format("\\u{:04x}", byte);
    } else {
      json += c;
    }
  }
  json += '"';
}

void OpenColumnJson(std::string& json, std::string_view name, std::span<const int64_t> steps,
                    std::span<const double> values) {
  const size_t count = std::min(steps.size(), values.size());
  // Typical sizes; a growing string would be copied a dozen times.
  json.reserve(json.size() + name.size() + 48 + count * 28);
  AppendJsonString(json, name);
  json += ":{\"steps\":[";
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) json += ',';
    AppendDigits(json, steps[i]);
  }
  json += "],\"values\":[";
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) json += ',';
    AppendValue(json, values[i]);
  }
  json += ']';
}

void AppendColumnsJson(std::string& json, const std::vector<Series>& series) {
  json += '{';
  bool first = true;
  for (const Series& one : series) {
    if (one.steps.empty()) continue;
    if (!first) json += ',';
    first = false;
    OpenColumnJson(json, one.name, one.steps, one.values);
    json += '}';
  }
  json += '}';
}

std::string PointsJson(std::string_view run, int32_t attempt, const std::vector<Series>& series) {
  std::string json = "{\"run\":";
  AppendJsonString(json, run);
  json += fmt::format(",\"attempt\":{},\"columns\":", attempt);
  AppendColumnsJson(json, series);
  return json + "}";
}

}  // namespace normlab::exporter
