#include "client/result_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "client/preset_table_report.h"
#include "client/term/table.h"
#include "client/term/text.h"

namespace normlab::client {
namespace {

constexpr const char* kBad = "#b42318";

size_t IndexOf(std::vector<std::string>& labels, const std::string& label) {
  const auto found = std::ranges::find(labels, label);
  if (found != labels.end()) return static_cast<size_t>(found - labels.begin());
  labels.push_back(label);
  return labels.size() - 1;
}

// All labels of a row but the last, which names the grid's row.
std::string GridTitle(const PresetCells& cells, const TableRow& row) {
  std::string title;
  for (size_t i = 0; i + 1 < row.labels.size(); ++i) {
    title += fmt::format("{}{} {}", i == 0 ? "" : ", ", cells.label_titles[i], row.labels[i]);
  }
  return title;
}

ResultGrid& GridOf(std::vector<ResultGrid>& grids, const PresetCells& cells, const TableRow& row) {
  std::string title = GridTitle(cells, row);
  for (ResultGrid& grid : grids) {
    if (grid.title == title) return grid;
  }
  grids.push_back({std::move(title), cells.label_titles.back(), cells.column_title, {}, {}, {}});
  return grids.back();
}

void PrintGrid(const ResultGrid& grid, Terminal& terminal) {
  std::vector<Table::Column> columns = {{grid.row_title, Align::kRight}};
  for (const std::string& column : grid.columns) columns.push_back({Clean(column), Align::kRight});
  Table table(columns);
  for (size_t r = 0; r < grid.rows.size(); ++r) {
    std::vector<Table::Cell> line = {{Clean(grid.rows[r])}};
    for (const TableCell* cell : grid.cells[r]) {
      if (cell == nullptr) {
        line.push_back({""});
      } else if (cell->Holds()) {
        line.push_back({CellValueText(cell->value)});
      } else {
        line.push_back({CellValueText(cell->value) + " ✗", kBad});
      }
    }
    table.Add(std::move(line));
  }
  // Aligned also where there is no terminal: a log is read by people.
  const int width = terminal.smart() ? terminal.size().columns : 0;
  for (const std::string& line : table.Aligned(terminal.style(), width)) terminal.Print(line);
}

}  // namespace

bool IsGrid(const PresetCells& cells) {
  return cells.is_loss && !cells.column_title.empty() && !cells.label_titles.empty();
}

std::vector<ResultGrid> GridsOf(const PresetCells& cells) {
  std::vector<ResultGrid> grids;
  for (const TableRow& row : cells.rows) {
    ResultGrid& grid = GridOf(grids, cells, row);
    const size_t r = IndexOf(grid.rows, row.labels.back());
    grid.cells.resize(grid.rows.size());
    for (const TableCell& cell : row.cells) {
      const size_t c = IndexOf(grid.columns, cell.column);
      if (grid.cells[r].size() <= c) grid.cells[r].resize(c + 1, nullptr);
      grid.cells[r][c] = &cell;
    }
  }
  for (ResultGrid& grid : grids) {
    for (auto& row : grid.cells) row.resize(grid.columns.size(), nullptr);
  }
  return grids;
}

void PrintGrids(const PresetCells& cells, Terminal& terminal) {
  bool first = true;
  for (const ResultGrid& grid : GridsOf(cells)) {
    if (!std::exchange(first, false)) terminal.Print("");
    const std::string of = grid.title.empty() ? "" : ", " + Clean(grid.title);
    terminal.Print(terminal.style().Bold(fmt::format("{} by {} and {}{}", cells.value_title,
                                                     grid.row_title, grid.column_title, of)));
    PrintGrid(grid, terminal);
  }
  PresetCells broken = cells;
  for (TableRow& row : broken.rows) {
    std::erase_if(row.cells, [](const TableCell& cell) { return cell.Holds(); });
  }
  if (cells.BrokenBandCount() == 0) return;
  terminal.Print("");
  PrintCells(broken, terminal);
}

exporter::Heatmap HeatmapOf(const PresetCells& cells, const std::string& title,
                            const std::string& footnote) {
  exporter::Heatmap heatmap = {title, cells.value_title + ", median of the seeds", footnote, {}};
  for (const ResultGrid& grid : GridsOf(cells)) {
    exporter::HeatmapPanel panel = {grid.title, grid.row_title, grid.column_title,
                                    grid.rows,  grid.columns,   {}};
    for (const auto& row : grid.cells) {
      std::vector<double>& values = panel.values.emplace_back();
      for (const TableCell* cell : row) {
        values.push_back(cell == nullptr ? std::numeric_limits<double>::quiet_NaN() : cell->value);
      }
    }
    heatmap.panels.push_back(std::move(panel));
  }
  return heatmap;
}

}  // namespace normlab::client
