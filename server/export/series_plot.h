// Lines over any axis as one self-contained SVG picture: panels side by side, a legend below. For
// what is no curve over steps of single runs: a number over depth, the stream over blocks, a median
// with its band over seeds.
#ifndef NORMLAB_SERVER_EXPORT_SERIES_PLOT_H_
#define NORMLAB_SERVER_EXPORT_SERIES_PLOT_H_

#include <string>
#include <vector>

namespace normlab::exporter {

struct PlotLine {
  std::string name;         // in the legend
  std::string colour = "";  // "#2563eb"; empty takes the palette's next
  int dash = 0;             // 0 is a whole line, 1 dashed, 2 dotted
  // Of equal length; points that are not finite and positive break the line.
  std::vector<double> x, y;
  // A band around the line, as long as x, or empty.
  std::vector<double> low = {}, high = {};
  // Hollow dots: what was expected at x, NaN where nothing was. As long as x, or empty.
  std::vector<double> expected = {};
  std::string note = "";  // behind the name in the legend
};

struct PlotPanel {
  std::string title;
  std::string x_label;
  bool log_x = false;
  bool dots = false;  // a dot at every point: few points, each a measurement
  std::vector<PlotLine> lines;
};

struct SeriesPlot {
  std::string title;
  std::string footnote;
  std::vector<PlotPanel> panels;  // one or two; the legend is the first's
};

// The vertical axes are logarithmic.
std::string SeriesPlotSvg(const SeriesPlot& plot);

}  // namespace normlab::exporter

#endif  // NORMLAB_SERVER_EXPORT_SERIES_PLOT_H_
