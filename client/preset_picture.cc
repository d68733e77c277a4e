#include "client/preset_picture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <utility>

#include "client/result_grid.h"
#include "server/export/heatmap.h"
#include "server/export/number_text.h"
#include "server/export/palette.h"
#include "server/export/series_plot.h"

namespace normlab::client {
namespace {

using exporter::Curve;
using exporter::PlotLine;
using exporter::PlotPanel;
using normlab::v1::Preset;
using normlab::v1::Run;
using Quantities = normlab::v1::PresetTable;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// "pre, gpt2"; of a single number also what it is: "warmup_steps 20".
std::string NameOf(const TableRow& row, const PresetCells& cells) {
  const std::string name = fmt::format("{}", fmt::join(row.labels, ", "));
  const bool number = !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) != 0;
  return number ? cells.label_titles.front() + " " + name : name;
}

// Rows of a long table share colours; dashes tell the rounds apart.
PlotLine LineOf(const PresetCells& cells, size_t index) {
  const TableRow& row = cells.rows[index];
  PlotLine line;
  line.name = NameOf(row, cells);
  line.colour = exporter::CurveColour(row.colour, index);
  line.dash = static_cast<int>(index / exporter::kPalette.size());
  return line;
}

// One point for each column that is a number, with the seeds as a band.
PlotLine CellsLine(const PresetCells& cells, size_t index) {
  const TableRow& row = cells.rows[index];
  PlotLine line = LineOf(cells, index);
  for (const TableCell& cell : row.cells) {
    char* end = nullptr;
    const double x = std::strtod(cell.column.c_str(), &end);
    if (end == cell.column.c_str() || *end != '\0') continue;
    const auto [low, high] = std::ranges::minmax_element(cell.values);
    line.x.push_back(x);
    line.y.push_back(cell.value);
    line.low.push_back(cell.values.empty() ? kNone : *low);
    line.high.push_back(cell.values.empty() ? kNone : *high);
    line.expected.push_back(cell.expected && cell.expected->value() != 0 ? cell.expected->value()
                                                                         : kNone);
  }
  if (const TableCell* slope = row.Find("slope")) {
    line.note = fmt::format("slope {:.2f}", slope->value);
  }
  return line;
}

PlotPanel CellsPanel(const PresetCells& cells, const std::string& title, bool log_x) {
  PlotPanel panel = {title, cells.column_title, log_x, /*dots=*/true, {}};
  for (size_t i = 0; i < cells.rows.size(); ++i) panel.lines.push_back(CellsLine(cells, i));
  return panel;
}

// Of the row's runs, that with most blocks: the one in which most is to be seen.
size_t DeepestRun(const TableRow& row, const std::vector<Run>& runs) {
  return *std::ranges::max_element(
      row.runs, {}, [&runs](size_t run) { return runs[run].effective_spec().layers(); });
}

// The way back through each block of each row's deepest run.
PlotPanel GaugePanel(const PresetCells& cells, const std::vector<Run>& runs,
                     const std::vector<Curve>& curves) {
  PlotPanel panel = {
      "gain of a block's Jacobian J, and |J - I| (dashed), deepest run", "block", false, false, {}};
  for (size_t i = 0; i < cells.rows.size(); ++i) {
    const size_t run = DeepestRun(cells.rows[i], runs);
    for (const char* name : {"jacobian_gain", "jacobian_distance"}) {
      PlotLine line = LineOf(cells, i);
      line.dash = name == std::string_view("jacobian_distance") ? 1 : 0;
      for (int64_t block = 1; block <= runs[run].effective_spec().layers(); ++block) {
        line.x.push_back(static_cast<double>(block));
        line.y.push_back(FirstValue(curves[run], BlockSeries(block, name)));
      }
      panel.lines.push_back(std::move(line));
    }
  }
  return panel;
}

// Median of the runs' values at each step, with the smallest and largest.
PlotLine SeedsLine(const PresetCells& cells, size_t index, const std::vector<Curve>& curves,
                   const char* series) {
  const TableRow& row = cells.rows[index];
  std::map<int64_t, std::vector<double>> by_step;
  for (const size_t run : row.runs) {
    const exporter::Series* found = curves[run].Find(series);
    if (found == nullptr) continue;
    for (size_t i = 0; i < found->steps.size(); ++i) {
      if (!std::isnan(found->values[i])) by_step[found->steps[i]].push_back(found->values[i]);
    }
  }
  PlotLine line = LineOf(cells, index);
  for (auto& [step, values] : by_step) {
    std::ranges::sort(values);
    const size_t middle = values.size() / 2;
    line.x.push_back(static_cast<double>(step));
    line.y.push_back(values.size() % 2 == 1 ? values[middle]
                                            : (values[middle - 1] + values[middle]) / 2);
    line.low.push_back(values.front());
    line.high.push_back(values.back());
  }
  if (!row.cells.empty() && !std::isnan(row.cells.front().value)) {
    const double loss = row.cells.front().value;
    line.note = std::isinf(loss) ? "diverged" : "final loss " + exporter::ShortNumberText(loss);
  }
  return line;
}

PlotPanel SeedsPanel(const PresetCells& cells, const std::vector<Curve>& curves, const char* series,
                     const std::string& title) {
  PlotPanel panel = {title, "step", false, false, {}};
  for (size_t i = 0; i < cells.rows.size(); ++i) {
    panel.lines.push_back(SeedsLine(cells, i, curves, series));
  }
  return panel;
}

}  // namespace

std::string PresetPicture(const Preset& preset, const std::vector<Run>& runs,
                          const std::vector<Curve>& curves, const PresetCells& cells,
                          const std::string& footnote) {
  if (IsGrid(cells)) return exporter::HeatmapSvg(HeatmapOf(cells, preset.title(), footnote));
  exporter::SeriesPlot plot = {preset.title(), footnote, {}};
  switch (preset.table().quantity()) {
    case Quantities::QUANTITY_LAST_FFN_GRADIENT:
      plot.panels = {
          CellsPanel(cells, "gradient norm of the last block's second matrix (o: expected)", true),
          GaugePanel(cells, runs, curves)};
      break;
    case Quantities::QUANTITY_STREAM:
      plot.panels = {CellsPanel(cells, "mean square of the stream (o: expected)", false)};
      break;
    default:
      plot.panels = {
          SeedsPanel(cells, curves, "loss", "loss: median of the seeds, smallest to largest"),
          SeedsPanel(cells, curves, "gradient_norm", "gradient norm, before clipping")};
  }
  return exporter::SeriesPlotSvg(plot);
}

}  // namespace normlab::client
