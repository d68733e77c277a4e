#include "server/export/points_json.h"

#include <fmt/format.h>

#include <cmath>

#include "server/export/number_text.h"

namespace normlab::exporter {
namespace {

void AppendSeriesJson(std::string& json, const Series& series) {
  AppendJsonString(json, series.name);
  json += ":{\"steps\":[";
  for (size_t i = 0; i < series.steps.size(); ++i) {
    if (i > 0) json += ',';
    json += std::to_string(series.steps[i]);
  }
  json += "],\"values\":[";
  for (size_t i = 0; i < series.values.size(); ++i) {
    if (i > 0) json += ',';
    const bool finite = std::isfinite(series.values[i]);
    if (!finite) json += '"';
    json += NumberText(series.values[i]);
    if (!finite) json += '"';
  }
  json += "]}";
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

void AppendColumnsJson(std::string& json, const std::vector<Series>& series) {
  json += '{';
  bool first = true;
  for (const Series& one : series) {
    if (one.steps.empty()) continue;
    if (!first) json += ',';
    first = false;
    AppendSeriesJson(json, one);
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
