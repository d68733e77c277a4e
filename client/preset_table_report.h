// A preset's table on the terminal, as CSV and as JSON.
#ifndef NORMLAB_CLIENT_PRESET_TABLE_REPORT_H_
#define NORMLAB_CLIENT_PRESET_TABLE_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "client/preset_table.h"
#include "client/term/terminal.h"

namespace normlab::client {

// "0.001653", "diverged", or "none" where no run has one.
std::string CellValueText(double value);

// A line a cell: value, spread of the seeds, what was expected, and whether it holds. Of many
// blocks only the first and the last.
void PrintCells(const PresetCells& cells, Terminal& terminal);

// Every cell: row settings, column, value, low, high, runs, expected, minimum, maximum, holds.
std::string CellsCsv(const PresetCells& cells);

// [{"settings":{"placement":"pre"},"column":"6","value":.35,…,"holds":true}]
nlohmann::ordered_json CellsJson(const PresetCells& cells);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_PRESET_TABLE_REPORT_H_
