#include "server/export/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "server/export/axis.h"
#include "server/export/number_text.h"
#include "server/export/palette.h"
#include "server/export/svg_parts.h"

namespace normlab::exporter {
namespace {

constexpr double kWidth = 1120;
constexpr double kMargin = 24;
constexpr double kPanelHeight = 320;
constexpr double kLegendRow = 24;
constexpr size_t kNamesShown = 60;  // characters of a name in the legend
constexpr int kMarksShown = 40;     // non-finite points marked one by one, a curve and panel

// A rectangle of the picture in which one series of all curves is drawn.
struct Panel {
  std::string series;
  std::string title;
  double left, top, width, height;
};

struct Steps {
  int64_t first = 0;
  int64_t last = 0;
};

double XAt(const Panel& panel, const Steps& steps, int64_t step) {
  const double span = static_cast<double>(std::max<int64_t>(1, steps.last - steps.first));
  return panel.left + panel.width * static_cast<double>(step - steps.first) / span;
}

double YAt(const Panel& panel, const LogAxis& axis, double value) {
  return panel.top + panel.height * (1 - axis.At(value));
}

bool Drawable(double value) { return std::isfinite(value) && value > 0; }

// Indices of the points to draw: all of them, or of each half pixel the first, smallest, largest
// and last. Points that cannot be drawn are kept, because they break the line.
std::vector<size_t> PointsToDraw(const Series& series, const Panel& panel, const Steps& steps) {
  std::vector<size_t> kept;
  const size_t count = series.steps.size();
  const bool all = static_cast<double>(count) <= panel.width * 4;
  for (size_t begin = 0; begin < count;) {
    const auto column_of = [&](size_t i) {
      return static_cast<int64_t>(XAt(panel, steps, series.steps[i]) * 2);
    };
    size_t end = begin + 1;
    while (!all && end < count && column_of(end) == column_of(begin)) ++end;
    std::vector<size_t> column = {begin, end - 1};
    size_t low = begin, high = begin;
    for (size_t i = begin; i < end; ++i) {
      if (series.values[i] < series.values[low] || !Drawable(series.values[low])) low = i;
      if (series.values[i] > series.values[high] || !Drawable(series.values[high])) high = i;
      if (!Drawable(series.values[i]) && column.size() < 4) column.push_back(i);
    }
    column.push_back(low);
    column.push_back(high);
    std::sort(column.begin(), column.end());
    column.erase(std::unique(column.begin(), column.end()), column.end());
    kept.insert(kept.end(), column.begin(), column.end());
    begin = end;
  }
  return kept;
}

std::string LinePath(const Series& series, const Panel& panel, const Steps& steps,
                     const LogAxis& axis) {
  std::string path;
  bool pen_down = false;
  for (const size_t i : PointsToDraw(series, panel, steps)) {
    if (!Drawable(series.values[i])) {
      pen_down = false;
      continue;
    }
    path += fmt::format("{}{:.2f} {:.2f}", pen_down ? "L" : "M", XAt(panel, steps, series.steps[i]),
                        YAt(panel, axis, series.values[i]));
    pen_down = true;
  }
  return path;
}

// A small bolt that stands on the step axis.
std::string Bolt(double x, double y, const std::string& colour, const std::string& why) {
  return fmt::format(
      "<path d=\"M{:.2f} {:.2f}l-5 9h4l-2 8 7 -10h-4l3 -7z\" fill=\"{}\" stroke=\"#fff\" "
      "stroke-width=\".8\"><title>{}</title></path>\n",
      x, y - 18, colour, XmlText(why));
}

std::string NonFiniteMarks(const Curve& curve, const Series& series, const Panel& panel,
                           const Steps& steps, const std::string& colour) {
  std::string marks;
  int shown = 0;
  double last_x = -1e9;
  for (size_t i = 0; i < series.steps.size() && shown < kMarksShown; ++i) {
    if (std::isfinite(series.values[i])) continue;
    const double x = XAt(panel, steps, series.steps[i]);
    if (x - last_x < 4) continue;
    last_x = x;
    ++shown;
    marks += Bolt(x, panel.top + panel.height, colour,
                  fmt::format("{}: {} is {} at step {}", curve.name, series.name,
                              NumberText(series.values[i]), series.steps[i]));
  }
  return marks;
}

std::string Grid(const Panel& panel, const LogAxis& axis, const Steps& steps) {
  std::string grid;
  const double right = panel.left + panel.width;
  const double bottom = panel.top + panel.height;
  for (const Tick& tick : axis.Ticks(7)) {
    const double y = YAt(panel, axis, tick.value);
    grid += fmt::format("<path d=\"M{:.1f} {:.2f}H{:.1f}\" class=\"{}\"/>\n", panel.left, y, right,
                        tick.label.empty() ? "minor" : "major");
    if (!tick.label.empty()) grid += SvgText(panel.left - 8, y + 4, "ylabel", tick.label);
  }
  for (const int64_t step : StepTicks(steps.first, steps.last, 6)) {
    const double x = XAt(panel, steps, step);
    grid +=
        fmt::format("<path d=\"M{:.2f} {:.1f}V{:.1f}\" class=\"minor\"/>\n", x, panel.top, bottom);
    grid += SvgText(x, bottom + 18, "xlabel", std::to_string(step));
  }
  grid += SvgText(panel.left + panel.width / 2, bottom + 36, "xlabel", "step");
  return grid + fmt::format("<path d=\"M{:.1f} {:.1f}V{:.1f}H{:.1f}\" class=\"frame\"/>\n",
                            panel.left, panel.top, bottom, right);
}

std::string DrawPanel(const std::vector<Curve>& curves, const Panel& panel, const Steps& steps) {
  LogAxis axis;
  int64_t not_positive = 0;
  for (const Curve& curve : curves) {
    const Series* series = curve.Find(panel.series);
    if (series == nullptr) continue;
    axis.Include(*series);
    for (const double value : series->values) not_positive += std::isfinite(value) && value <= 0;
  }
  axis.Pad();
  std::string drawn = SvgText(panel.left, panel.top - 12, "title", panel.title);
  drawn += Grid(panel, axis, steps);
  if (!axis.HasRange()) {
    drawn +=
        SvgText(panel.left + panel.width / 2, panel.top + panel.height / 2, "xlabel", "no points");
  }
  for (size_t i = 0; i < curves.size(); ++i) {
    const Series* series = curves[i].Find(panel.series);
    if (series == nullptr) continue;
    const std::string colour = CurveColour(curves[i].colour, i);
    // From the ninth curve on the palette repeats; a dashed line tells the rounds apart.
    const std::string dash = i < kPalette.size() ? "" : " stroke-dasharray=\"6 3\"";
    const std::string path = axis.HasRange() ? LinePath(*series, panel, steps, axis) : "";
    if (!path.empty()) {
      drawn += fmt::format("<path d=\"{}\" class=\"line\" stroke=\"{}\"{}/>\n", path, colour, dash);
    }
    drawn += NonFiniteMarks(curves[i], *series, panel, steps, colour);
  }
  if (not_positive > 0) {
    drawn += SvgText(panel.left + panel.width, panel.top - 12, "note",
                     fmt::format("{} points at or below 0 are not drawn", not_positive));
  }
  return drawn;
}

// The values that a legend shows for one curve.
struct Figures {
  std::string final_loss = "–";
  std::string max_norm = "–";
  std::string first_bad;
};

Figures FiguresOf(const Curve& curve) {
  Figures figures;
  std::optional<int64_t> bad;
  for (const char* name : {"loss", "gradient_norm"}) {
    const Series* series = curve.Find(name);
    if (series == nullptr || series->values.empty()) continue;
    double largest = series->values.front();
    for (size_t i = 0; i < series->values.size(); ++i) {
      const double value = series->values[i];
      if (!std::isfinite(value) && (!bad || series->steps[i] < *bad)) bad = series->steps[i];
      if (std::isfinite(value) && (value > largest || !std::isfinite(largest))) largest = value;
    }
    if (series->name == "loss") figures.final_loss = ShortNumberText(series->values.back());
    if (series->name == "gradient_norm") figures.max_norm = ShortNumberText(largest);
  }
  if (bad) figures.first_bad = fmt::format("not finite at step {}", *bad);
  return figures;
}

std::string Legend(const std::vector<Curve>& curves, double top) {
  const double value_column = 700, norm_column = 900;
  std::string legend = SvgText(value_column, top, "head", "final loss");
  legend += SvgText(norm_column, top, "head", "maximum gradient norm");
  for (size_t i = 0; i < curves.size(); ++i) {
    const double y = top + kLegendRow * static_cast<double>(i + 1);
    const Figures figures = FiguresOf(curves[i]);
    const std::string dash = i < kPalette.size() ? "" : " stroke-dasharray=\"6 3\"";
    legend += fmt::format("<path d=\"M{:.1f} {:.1f}h28\" class=\"key\" stroke=\"{}\"{}/>\n", 76.0,
                          y - 4, CurveColour(curves[i].colour, i), dash);
    legend += SvgText(116, y, "name", Shortened(curves[i].name, kNamesShown));
    legend += SvgText(value_column, y, "value", figures.final_loss);
    legend += SvgText(norm_column, y, "value", figures.max_norm);
    if (!figures.first_bad.empty())
      legend += SvgText(norm_column + 24, y, "bad", figures.first_bad);
  }
  return legend;
}

Steps StepsOf(const std::vector<Curve>& curves) {
  std::optional<Steps> steps;
  for (const Curve& curve : curves) {
    for (const char* name : {"loss", "gradient_norm"}) {
      const Series* series = curve.Find(name);
      if (series == nullptr || series->steps.empty()) continue;
      if (!steps) steps = Steps{series->steps.front(), series->steps.back()};
      steps->first = std::min(steps->first, series->steps.front());
      steps->last = std::max(steps->last, series->steps.back());
    }
  }
  return steps.value_or(Steps{0, 1});
}

}  // namespace

std::string PlotSvg(const std::vector<Curve>& curves, const SvgOptions& options) {
  const double heading = options.title.empty() ? 0 : 30;
  const double top = kMargin + heading + 22;
  const double panel_width = (kWidth - 2 * kMargin - 2 * 52 - 28) / 2;
  const double legend_top = top + kPanelHeight + 68;
  const double height = legend_top + kLegendRow * static_cast<double>(curves.size()) +
                        (options.footnote.empty() ? 0 : 26) + kMargin;
  const Panel loss = {"loss", "loss", kMargin + 52, top, panel_width, kPanelHeight};
  const Panel norm = {"gradient_norm",
                      "gradient norm, before clipping",
                      kMargin + 52 + panel_width + 28 + 52,
                      top,
                      panel_width,
                      kPanelHeight};
  const Steps steps = StepsOf(curves);

  std::string svg;
  if (!options.title.empty()) svg += SvgText(kMargin, kMargin + 14, "heading", options.title);
  svg += DrawPanel(curves, loss, steps);
  svg += DrawPanel(curves, norm, steps);
  svg += Legend(curves, legend_top);
  if (!options.footnote.empty()) svg += SvgText(kMargin, height - 16, "foot", options.footnote);
  return SvgDocument(kWidth, height,
                     options.title.empty() ? "Loss and gradient norm" : options.title, svg);
}

}  // namespace normlab::exporter
