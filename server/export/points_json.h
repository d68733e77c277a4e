// The one JSON encoding of points: event streams, series answers and JSON lines share it.
//
//   {"run":"01J…","attempt":1,"columns":{"loss":{"steps":[7,8],"values":[4.1,"NaN"]}}}
//
// Steps are JSON numbers (below 2^53), values the shortest text that reads back as the same double
// or one of the strings "NaN", "Infinity", "-Infinity". A series without points is left out.
#ifndef NORMLAB_SERVER_EXPORT_POINTS_JSON_H_
#define NORMLAB_SERVER_EXPORT_POINTS_JSON_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/export/curve.h"

namespace normlab::exporter {

// Appends `text` as a JSON string with its quotes.
void AppendJsonString(std::string& json, std::string_view text);

// Appends `"loss":{"steps":[…],"values":[…]` without the closing brace, so that more can be said of
// the column. As many points as there are both steps and values.
void OpenColumnJson(std::string& json, std::string_view name, std::span<const int64_t> steps,
                    std::span<const double> values);

// Appends {"loss":{"steps":[…],"values":[…]},…}.
void AppendColumnsJson(std::string& json, const std::vector<Series>& series);

std::string PointsJson(std::string_view run, int32_t attempt, const std::vector<Series>& series);

}  // namespace normlab::exporter

#endif  // NORMLAB_SERVER_EXPORT_POINTS_JSON_H_
