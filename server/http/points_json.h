// The encoding of bulk points, the same in event streams, series answers and JSON-lines exports:
//
//   {"run":"01J8","attempt":1,"columns":{"loss":{"steps":[7,8],"values":[4.1,"NaN"]}}}
//
// Written by hand because proto3 JSON would print every step as a string and costs 25 us an event.
// Each series has its own steps. Steps are JSON numbers (exact up to 2^53), values the shortest
// text that reads back as the same double; non-finite ones are the strings "NaN", "Infinity" and
// "-Infinity". A missing point has no entry. Pure functions, any thread.
#ifndef NORMLAB_SERVER_HTTP_POINTS_JSON_H_
#define NORMLAB_SERVER_HTTP_POINTS_JSON_H_

#include <string>
#include <string_view>

#include "normlab/v1/run_service.pb.h"

namespace normlab::http {

std::string PointsJson(const v1::Points& points);

// Each column also says how much of it was left out: totalPoints, nonFinitePoints and, where there
// is one, firstNonFiniteStep.
std::string SeriesJson(const v1::ReadSeriesResponse& series);

// `text` as a JSON string with its quotes. What is not UTF-8 becomes U+FFFD.
std::string QuotedJson(std::string_view text);

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_POINTS_JSON_H_
