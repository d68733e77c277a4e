#include "server/http/points_json.h"

#include <string>
#include <string_view>

#include "nlohmann/json.hpp"
#include "server/export/points_json.h"

namespace normlab::http {
namespace {

void OpenColumn(const v1::Column& column, std::string& out) {
  const auto size = [](const auto& field) { return static_cast<size_t>(field.size()); };
  exporter::OpenColumnJson(out, column.name(), {column.steps().data(), size(column.steps())},
                           {column.values().data(), size(column.values())});
}

}  // namespace

std::string PointsJson(const v1::Points& points) {
  std::string out = "{\"run\":" + QuotedJson(points.run()) + ",\"attempt\":";
  out += std::to_string(points.attempt());
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
    out += std::to_string(column.total_points());
    out += ",\"nonFinitePoints\":";
    out += std::to_string(column.non_finite_points());
    if (column.has_first_non_finite_step()) {
      out += ",\"firstNonFiniteStep\":";
      out += std::to_string(column.first_non_finite_step());
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
