#include "client/term/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "client/term/text.h"
#include "server/export/axis.h"

namespace normlab::client {
namespace {

constexpr int kLabelWidth = 7;
constexpr int kNarrowestPlot = 10;
constexpr int kLowestPlot = 2;

// A grid of characters, each with 2 x 4 dots and the colour of the last curve that touched it.
class Canvas {
 public:
  Canvas(int columns, int rows) : columns_(columns), rows_(rows), cells_(columns * rows) {}

  int dot_columns() const { return columns_ * 2; }
  int dot_rows() const { return rows_ * 4; }

  void Dot(int x, int y, const std::string& colour) {
    if (x < 0 || y < 0 || x >= dot_columns() || y >= dot_rows()) return;
    static constexpr int kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    Cell& cell = cells_[(y / 4) * columns_ + x / 2];
    cell.dots |= kBits[y % 4][x % 2];
    cell.colour = &colour;
  }

  void Line(int x0, int y0, int x1, int y1, const std::string& colour) {
    const int length = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= length; ++i) {
      Dot(x0 + (x1 - x0) * i / length, y0 + (y1 - y0) * i / length, colour);
    }
  }

  std::string Row(int row, const Style& style) const {
    std::string line, run;
    const std::string* colour = nullptr;
    const auto flush = [&] {
      line += colour == nullptr ? run : style.Paint(run, *colour);
      run.clear();
    };
    for (int column = 0; column < columns_; ++column) {
      const Cell& cell = cells_[row * columns_ + column];
      if (cell.colour != colour) flush();
      colour = cell.colour;
      run += cell.dots == 0 ? " " : Braille(cell.dots);
    }
    flush();
    return line;
  }

 private:
  struct Cell {
    int dots = 0;
    const std::string* colour = nullptr;
  };

  // U+2800 + dots, in UTF-8.
  static std::string Braille(int dots) {
    return {static_cast<char>(0xe2), static_cast<char>(0xa0 | (dots >> 6)),
            static_cast<char>(0x80 | (dots & 0x3f))};
  }

  int columns_, rows_;
  std::vector<Cell> cells_;
};

int DotColumn(int64_t step, int64_t last_step, int dot_columns) {
  const double span = static_cast<double>(std::max<int64_t>(1, last_step - 1));
  return static_cast<int>(std::lround(static_cast<double>(step - 1) / span * (dot_columns - 1)));
}

int DotRow(double value, const exporter::LogAxis& axis, int dot_rows) {
  return static_cast<int>(std::lround((1 - axis.At(value)) * (dot_rows - 1)));
}

void DrawCurve(const ChartCurve& curve, int64_t last_step, const exporter::LogAxis& axis,
               Canvas& canvas) {
  const exporter::Series& series = *curve.series;
  bool pen_down = false;
  int last_x = 0, last_y = 0;
  for (size_t i = 0; i < series.steps.size();) {
    const int x = DotColumn(series.steps[i], last_step, canvas.dot_columns());
    double low = 0, high = 0;  // of the points in this dot column
    size_t end = i;
    for (; end < series.steps.size(); ++end) {
      if (DotColumn(series.steps[end], last_step, canvas.dot_columns()) != x) break;
      const double value = series.values[end];
      if (!std::isfinite(value) || value <= 0) continue;
      low = low == 0 ? value : std::min(low, value);
      high = std::max(high, value);
    }
    i = end;
    if (high == 0) {
      pen_down = false;
      continue;
    }
    const int y_low = DotRow(low, axis, canvas.dot_rows());
    const int y_high = DotRow(high, axis, canvas.dot_rows());
    if (pen_down) canvas.Line(last_x, last_y, x, std::clamp(last_y, y_high, y_low), curve.colour);
    canvas.Line(x, y_high, x, y_low, curve.colour);
    last_x = x;
    const double last = series.values[end - 1];
    last_y = std::isfinite(last) && last > 0 ? DotRow(last, axis, canvas.dot_rows()) : y_low;
    pen_down = true;
  }
}

// Labels by row. Values next to each other may want one row: the first keeps it.
std::map<int, std::string> Labels(const exporter::LogAxis& axis, int rows) {
  std::map<int, std::string> labels;
  for (const exporter::Tick& tick : axis.Ticks(std::max(2, rows / 2))) {
    if (tick.label.empty()) continue;
    labels.emplace(static_cast<int>(std::lround((1 - axis.At(tick.value)) * (rows - 1))),
                   tick.label);
  }
  return labels;
}

// "└─────×───": marks stand where a curve stopped being finite.
std::string AxisLine(const Chart& chart, int plot_width, const Style& style) {
  std::vector<const std::string*> marks(plot_width, nullptr);
  for (const ChartCurve& curve : chart.curves) {
    if (curve.series == nullptr) continue;
    for (size_t i = 0; i < curve.series->steps.size(); ++i) {
      if (std::isfinite(curve.series->values[i])) continue;
      marks[DotColumn(curve.series->steps[i], chart.last_step, plot_width * 2) / 2] = &curve.colour;
    }
  }
  std::string line = style.Dim("└");
  for (const std::string* mark : marks) {
    line += mark == nullptr ? style.Dim("─") : style.Paint("×", *mark);
  }
  return line;
}

}  // namespace

std::vector<std::string> DrawChart(const Chart& chart, int width, int height, const Style& style) {
  const int plot_width = width - kLabelWidth - 1;
  const int plot_rows = height - 3;
  if (plot_width < kNarrowestPlot || plot_rows < kLowestPlot) return {};
  exporter::LogAxis axis;
  for (const ChartCurve& curve : chart.curves) {
    if (curve.series != nullptr) axis.Include(*curve.series);
  }
  axis.Pad();
  Canvas canvas(plot_width, plot_rows);
  // Drawn from the last to the first: where curves cross, the first is on top.
  for (auto curve = chart.curves.rbegin(); curve != chart.curves.rend(); ++curve) {
    if (curve->series != nullptr && axis.HasRange()) {
      DrawCurve(*curve, chart.last_step, axis, canvas);
    }
  }
  const std::map<int, std::string> labels =
      axis.HasRange() ? Labels(axis, plot_rows) : std::map<int, std::string>{};
  std::vector<std::string> lines;
  lines.push_back(std::string(kLabelWidth + 1, ' ') + Fit(chart.title, plot_width));
  for (int row = 0; row < plot_rows; ++row) {
    const auto label = labels.find(row);
    const bool has_label = label != labels.end();
    lines.push_back(style.Dim(Fit(has_label ? label->second : "", kLabelWidth - 1, Align::kRight)) +
                    " " + style.Dim(has_label ? "┤" : "│") + canvas.Row(row, style));
  }
  lines.push_back(std::string(kLabelWidth, ' ') + AxisLine(chart, plot_width, style));
  const std::string last = "step " + std::to_string(chart.last_step);
  lines.push_back(style.Dim(std::string(kLabelWidth + 1, ' ') + "1" +
                            Pad(last, plot_width - 1, Align::kRight)));
  return lines;
}

}  // namespace normlab::client
