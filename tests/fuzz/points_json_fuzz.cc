// The JSON of points: what any JSON reader gets from it is every step and every double, bit for
// bit, under the series' own names.
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "normlab/v1/run.pb.h"
#include "server/export/points_json.h"
#include "server/http/points_json.h"
#include "server/http/text.h"
#include "tests/fuzz/property.h"

namespace {

using normlab::exporter::Series;
using normlab::fuzz::Input;

std::vector<Series> MakeSeries(Input& input) {
  std::vector<Series> all;
  while (!input.empty() && all.size() < 20) {
    Series one;
    // Names that were stored are UTF-8; a number in front keeps them apart.
    const std::string_view name = input.Text();
    one.name = std::to_string(all.size());
    if (normlab::http::IsUtf8(name)) one.name += name;
    for (size_t count = 1 + input.Value<uint8_t>(); count > 0; --count) {
      one.steps.push_back(static_cast<int64_t>(input.Value<uint64_t>() >> 11));  // below 2^53
      one.values.push_back(input.Value<double>());
    }
    all.push_back(std::move(one));
  }
  return all;
}

double ValueOf(const nlohmann::json& json) {
  if (json == "NaN") return NAN;
  if (json == "Infinity") return INFINITY;
  if (json == "-Infinity") return -INFINITY;
  REQUIRE(json.is_number());
  return json.get<double>();
}

void RequireSame(double a, double b) {
  if (std::isnan(a)) {
    REQUIRE(std::isnan(b));
  } else if (a == 0 && b == 0) {
    // "-0" is an integer to some readers, which have no such zero.
  } else {
    REQUIRE(std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b));
  }
}

void RequireReadsBack(const std::string& text, const std::vector<Series>& series) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  REQUIRE(json.is_object() && json["run"] == "01J\"\\/" && json["attempt"] == 7);
  const nlohmann::json& columns = json["columns"];
  REQUIRE(columns.size() == series.size());
  for (const Series& one : series) {
    const auto column = columns.find(one.name);
    REQUIRE(column != columns.end());
    const nlohmann::json& steps = (*column)["steps"];
    const nlohmann::json& values = (*column)["values"];
    REQUIRE(steps.size() == one.steps.size() && values.size() == one.values.size());
    for (size_t i = 0; i < one.steps.size(); ++i) {
      REQUIRE(steps[i] == one.steps[i]);
      RequireSame(one.values[i], ValueOf(values[i]));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const std::vector<Series> series = MakeSeries(input);
  RequireReadsBack(normlab::exporter::PointsJson("01J\"\\/", 7, series), series);
  normlab::v1::Points points;
  points.set_run("01J\"\\/");
  points.set_attempt(7);
  for (const Series& one : series) {
    normlab::v1::Column& column = *points.add_columns();
    column.set_name(one.name);
    column.mutable_steps()->Add(one.steps.begin(), one.steps.end());
    column.mutable_values()->Add(one.values.begin(), one.values.end());
  }
  RequireReadsBack(normlab::http::PointsJson(points), series);
  return 0;
}
