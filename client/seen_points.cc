#include "client/seen_points.h"

#include <algorithm>
#include <utility>

namespace normlab::client {
namespace {

using normlab::v1::Column;

// Without the points up to `step`.
void DropUpTo(int64_t step, Column& column) {
  const auto& steps = column.steps();
  if (steps.empty() || steps.Get(0) > step) return;
  const auto first = std::upper_bound(steps.begin(), steps.end(), step);
  Column rest;
  rest.set_name(column.name());
  rest.mutable_steps()->Add(first, steps.end());
  rest.mutable_values()->Add(column.values().begin() + (first - steps.begin()),
                             column.values().end());
  column = std::move(rest);
}

}  // namespace

bool SeenPoints::Keep(normlab::v1::WatchRunsResponse& event) {
  if (!event.has_points()) return true;
  normlab::v1::Points& points = *event.mutable_points();
  Position& seen = seen_[points.run()];
  if (points.attempt() < seen.attempt) return false;
  if (points.attempt() > seen.attempt) seen = {points.attempt(), 0};
  int64_t last = seen.step;
  auto& columns = *points.mutable_columns();
  for (Column& column : columns) {
    DropUpTo(seen.step, column);
    if (!column.steps().empty()) last = std::max(last, *column.steps().rbegin());
  }
  columns.erase(std::remove_if(columns.begin(), columns.end(),
                               [](const Column& column) { return column.steps().empty(); }),
                columns.end());
  seen.step = last;
  return !columns.empty();
}

}  // namespace normlab::client
