#include "server/export/series_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "server/export/axis.h"
#include "server/export/palette.h"
#include "server/export/svg_parts.h"

namespace normlab::exporter {
namespace {

constexpr double kWidth = 1120;
constexpr double kMargin = 24;
constexpr double kLabels = 52;  // room for the labels of a vertical axis
constexpr double kGap = 28;     // between panels
constexpr double kPanelHeight = 340;
constexpr double kLegendRow = 22;
constexpr size_t kNamesShown = 60;

bool Drawable(double value) { return std::isfinite(value) && value > 0; }

// Where values stand in one panel of the picture.
class Frame {
 public:
  Frame(const PlotPanel& panel, double left, double top, double width)
      : log_x_(panel.log_x), left_(left), top_(top), width_(width) {
    for (const PlotLine& line : panel.lines) {
      for (size_t i = 0; i < line.x.size(); ++i) Include(line, i);
    }
    y_axis_.Pad();
    if (log_x_) x_axis_.Pad();
  }

  bool HasRange() const { return y_axis_.HasRange(); }
  double left() const { return left_; }
  double right() const { return left_ + width_; }
  double top() const { return top_; }
  double bottom() const { return top_ + kPanelHeight; }
  double middle() const { return left_ + width_ / 2; }

  double X(double x) const {
    if (log_x_) return left_ + width_ * x_axis_.At(x);
    return left_ + width_ * (x - first_) / std::max(1e-9, last_ - first_);
  }
  double Y(double y) const { return top_ + kPanelHeight * (1 - y_axis_.At(y)); }

  std::vector<Tick> XTicks() const {
    if (log_x_) return x_axis_.Ticks(6);
    std::vector<Tick> ticks;
    for (const int64_t tick : StepTicks(std::llround(first_), std::llround(last_), 8)) {
      ticks.push_back({static_cast<double>(tick), std::to_string(tick)});
    }
    return ticks;
  }
  std::vector<Tick> YTicks() const { return y_axis_.Ticks(7); }

 private:
  void Include(const PlotLine& line, size_t i) {
    const double x = line.x[i];
    if (!std::isfinite(x) || (log_x_ && x <= 0)) return;
    if (!seen_x_) first_ = last_ = x;
    seen_x_ = true;
    first_ = std::min(first_, x);
    last_ = std::max(last_, x);
    x_axis_.Include(x);
    for (const auto* values : {&line.y, &line.low, &line.high, &line.expected}) {
      if (i < values->size()) y_axis_.Include((*values)[i]);
    }
  }

  const bool log_x_;
  const double left_, top_, width_;
  LogAxis x_axis_, y_axis_;
  bool seen_x_ = false;
  double first_ = 0, last_ = 1;
};

std::string Grid(const PlotPanel& panel, const Frame& frame) {
  std::string grid = SvgText(frame.left(), frame.top() - 12, "title", panel.title);
  for (const Tick& tick : frame.YTicks()) {
    const double y = frame.Y(tick.value);
    grid += fmt::format("<path d=\"M{:.1f} {:.2f}H{:.1f}\" class=\"{}\"/>\n", frame.left(), y,
                        frame.right(), tick.label.empty() ? "minor" : "major");
    if (!tick.label.empty()) grid += SvgText(frame.left() - 8, y + 4, "ylabel", tick.label);
  }
  for (const Tick& tick : frame.XTicks()) {
    const double x = frame.X(tick.value);
    grid += fmt::format("<path d=\"M{:.2f} {:.1f}V{:.1f}\" class=\"minor\"/>\n", x, frame.top(),
                        frame.bottom());
    if (!tick.label.empty()) grid += SvgText(x, frame.bottom() + 18, "xlabel", tick.label);
  }
  grid += SvgText(frame.middle(), frame.bottom() + 36, "xlabel", panel.x_label);
  if (!frame.HasRange()) {
    grid += SvgText(frame.middle(), frame.top() + kPanelHeight / 2, "xlabel", "no points");
  }
  return grid + fmt::format("<path d=\"M{:.1f} {:.1f}V{:.1f}H{:.1f}\" class=\"frame\"/>\n",
                            frame.left(), frame.top(), frame.bottom(), frame.right());
}

std::string_view DashOf(const PlotLine& line) {
  if (line.dash == 0) return "";
  return line.dash == 1 ? " stroke-dasharray=\"6 3\"" : " stroke-dasharray=\"2 3\"";
}

// The area between low and high, as far as both can be drawn.
std::string Band(const PlotLine& line, const Frame& frame, const std::string& colour) {
  std::string there, back;
  for (size_t i = 0; i < std::min(line.low.size(), line.high.size()); ++i) {
    if (!Drawable(line.low[i]) || !Drawable(line.high[i])) continue;
    there += fmt::format("{}{:.2f} {:.2f}", there.empty() ? "M" : "L", frame.X(line.x[i]),
                         frame.Y(line.high[i]));
    back.insert(0, fmt::format("L{:.2f} {:.2f}", frame.X(line.x[i]), frame.Y(line.low[i])));
  }
  if (there.empty()) return "";
  return fmt::format("<path d=\"{}{}Z\" class=\"band\" fill=\"{}\"/>\n", there, back, colour);
}

std::string Path(const PlotLine& line, const Frame& frame, const std::string& colour) {
  std::string path;
  bool pen_down = false;
  for (size_t i = 0; i < line.y.size(); ++i) {
    if (Drawable(line.y[i])) {
      path += fmt::format("{}{:.2f} {:.2f}", pen_down ? "L" : "M", frame.X(line.x[i]),
                          frame.Y(line.y[i]));
    }
    pen_down = Drawable(line.y[i]);
  }
  if (path.empty()) return "";
  return fmt::format("<path d=\"{}\" class=\"line\" stroke=\"{}\"{}/>\n", path, colour,
                     DashOf(line));
}

std::string Dots(const PlotLine& line, const Frame& frame, const std::string& colour, bool dots) {
  std::string drawn;
  for (size_t i = 0; i < line.x.size(); ++i) {
    if (i < line.expected.size() && Drawable(line.expected[i])) {
      drawn += fmt::format(
          "<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"5\" class=\"expected\" stroke=\"{}\"/>\n",
          frame.X(line.x[i]), frame.Y(line.expected[i]), colour);
    }
    if (dots && Drawable(line.y[i])) {
      drawn += fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"2.5\" fill=\"{}\"/>\n",
                           frame.X(line.x[i]), frame.Y(line.y[i]), colour);
    }
  }
  return drawn;
}

std::string DrawPanel(const PlotPanel& panel, double left, double top, double width) {
  const Frame frame(panel, left, top, width);
  std::string drawn = Grid(panel, frame);
  if (!frame.HasRange()) return drawn;
  for (const auto draw : {Band, Path}) {
    for (size_t i = 0; i < panel.lines.size(); ++i) {
      drawn += draw(panel.lines[i], frame, CurveColour(panel.lines[i].colour, i));
    }
  }
  for (size_t i = 0; i < panel.lines.size(); ++i) {
    drawn += Dots(panel.lines[i], frame, CurveColour(panel.lines[i].colour, i), panel.dots);
  }
  return drawn;
}

std::string Legend(const std::vector<PlotLine>& lines, double top) {
  std::string legend;
  const size_t half = (lines.size() + 1) / 2;  // two columns
  for (size_t i = 0; i < lines.size(); ++i) {
    const double x = kMargin + kLabels + (i < half ? 0 : kWidth / 2);
    const double y = top + kLegendRow * static_cast<double>(i < half ? i : i - half);
    legend += fmt::format("<path d=\"M{:.1f} {:.1f}h28\" class=\"key\" stroke=\"{}\"{}/>\n", x,
                          y - 4, CurveColour(lines[i].colour, i), DashOf(lines[i]));
    legend += SvgText(x + 40, y, "name", Shortened(lines[i].name, kNamesShown));
    if (!lines[i].note.empty()) legend += SvgText(x + 240, y, "name", lines[i].note);
  }
  return legend;
}

}  // namespace

std::string SeriesPlotSvg(const SeriesPlot& plot) {
  const double top = kMargin + 30 + 22;
  const auto count = static_cast<double>(std::max<size_t>(1, plot.panels.size()));
  const double panel_width = (kWidth - 2 * kMargin - (count - 1) * kGap) / count - kLabels;
  const double legend_top = top + kPanelHeight + 68;
  const size_t lines = plot.panels.empty() ? 0 : plot.panels.front().lines.size();
  const double height = legend_top + kLegendRow * static_cast<double>((lines + 1) / 2) + 26;
  std::string svg = SvgText(kMargin, kMargin + 14, "heading", plot.title);
  for (size_t i = 0; i < plot.panels.size(); ++i) {
    const double left = kMargin + kLabels + static_cast<double>(i) * (panel_width + kLabels + kGap);
    svg += DrawPanel(plot.panels[i], left, top, panel_width);
  }
  if (!plot.panels.empty()) svg += Legend(plot.panels.front().lines, legend_top);
  svg += SvgText(kMargin, height - 14, "foot", plot.footnote);
  return SvgDocument(kWidth, height, plot.title, svg);
}

}  // namespace normlab::exporter
