// A preset's or a sweep's table as grids: rows x columns of two settings, one grid for each value
// of what else names a row.
#ifndef NORMLAB_CLIENT_RESULT_GRID_H_
#define NORMLAB_CLIENT_RESULT_GRID_H_

#include <string>
#include <vector>

#include "client/preset_table.h"
#include "client/term/terminal.h"
#include "server/export/heatmap.h"

namespace normlab::client {

struct ResultGrid {
  std::string title;  // "placement pre"; empty where there is one grid
  std::string row_title, column_title;
  std::vector<std::string> rows, columns;            // in the order of the runs
  std::vector<std::vector<const TableCell*>> cells;  // by row; null where no run is
};

// Whether the table has two settings to make a grid of, and shows losses.
bool IsGrid(const PresetCells& cells);

// They point into `cells`.
std::vector<ResultGrid> GridsOf(const PresetCells& cells);

// Each grid as a table; values that break their band are marked, and told below with the band.
void PrintGrids(const PresetCells& cells, Terminal& terminal);

// Each grid as a heatmap.
exporter::Heatmap HeatmapOf(const PresetCells& cells, const std::string& title,
                            const std::string& footnote);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_RESULT_GRID_H_
