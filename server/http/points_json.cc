#include "server/http/points_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace normlab::http {
namespace {

template <typename Number>
void AppendDigits(Number number, std::string& out) {
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof(digits), number);
  out.append(digits, end.ptr);
}

void AppendValue(double value, std::string& out) {
  if (std::isfinite(value)) {
    AppendDigits(value, out);
  } else if (std::isnan(value)) {
    out += "\"NaN\"";
  } else {
    out += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  }
}

// `"loss":{"steps":[7,8],"values":[4.1,"NaN"]` without the closing brace.
void OpenColumn(const v1::Column& column, std::string& out) {
  const int count = std::min(column.steps_size(), column.values_size());
  // Typical sizes; a growing string would be copied a dozen times.
  out.reserve(out.size() + column.name().size() + 48 + static_cast<size_t>(count) * 28);
  out += QuotedJson(column.name());
  out += ":{\"steps\":[";
  for (int i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    AppendDigits(column.steps(i), out);
  }
  out += "],\"values\":[";
  for (int i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    AppendValue(column.values(i), out);
  }
  out += ']';
}

}  // namespace

std::string PointsJson(const v1::Points& points) {
  std::string out = "{\"run\":" + QuotedJson(points.run()) + ",\"attempt\":";
  AppendDigits(points.attempt(), out);
  out += ",\"columns\":{";
  bool first = true;
  for (const v1::Column& column : points.columns()) {
    if (!first) out += ',';
    first = false;
    OpenColumn(column, out);
    out += '}';
  }
  out += "}}";
  return out;
}

std::string SeriesJson(const v1::ReadSeriesResponse& series) {
  std::string out = "{\"run\":" + QuotedJson(series.run()) + ",\"columns\":{";
  bool first = true;
  for (const v1::SeriesColumn& column : series.columns()) {
    if (!first) out += ',';
    first = false;
    OpenColumn(column.column(), out);
    out += ",\"totalPoints\":";
    AppendDigits(column.total_points(), out);
    out += ",\"nonFinitePoints\":";
    AppendDigits(column.non_finite_points(), out);
    if (column.has_first_non_finite_step()) {
      out += ",\"firstNonFiniteStep\":";
      AppendDigits(column.first_non_finite_step(), out);
    }
    out += '}';
  }
  out += "}}";
  return out;
}

std::string QuotedJson(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace normlab::http
