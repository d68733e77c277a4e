// Curves drawn with braille dots, two by four to a character, on a logarithmic axis.
#ifndef NORMLAB_CLIENT_TERM_CHART_H_
#define NORMLAB_CLIENT_TERM_CHART_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/term/style.h"
#include "server/export/curve.h"

namespace normlab::client {

struct ChartCurve {
  const exporter::Series* series = nullptr;  // may be null: nothing yet
  std::string colour;
};

struct Chart {
  std::string title;
  std::vector<ChartCurve> curves;
  int64_t last_step = 1;  // the right end of the step axis: the curves grow towards it
};

// `height` lines of at most `width` columns: a title, the plot with labels at its left, the step
// axis. The largest and smallest value of each dot column are drawn; points that are not finite are
// marked with x on the step axis. Empty when there is no room for a plot.
std::vector<std::string> DrawChart(const Chart& chart, int width, int height, const Style& style);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_TERM_CHART_H_
