#include "client/sweep_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include "server/domain/settings.h"
#include "server/domain/varied_settings.h"

namespace normlab::client {
namespace {

using normlab::v1::PresetTable;
using normlab::v1::Run;
using normlab::v1::RunSpec;
using normlab::v1::Sweep;
using normlab::v1::SweepAxis;

constexpr double kFull = .75;  // of a grid's cells have a run

// What varies but seeds: the axes in their order, then what else differs between runs.
std::vector<std::string> Varied(const Sweep& sweep, const std::vector<Run>& runs) {
  std::vector<RunSpec> specs;
  for (const Run& run : runs) specs.push_back(run.spec());
  std::vector<std::string> differing;
  if (!specs.empty()) differing = domain::VariedSettings(specs);
  std::erase(differing, "seed");
  std::vector<std::string> names;
  for (const SweepAxis& axis : sweep.axes()) {
    const domain::SettingInfo* setting = domain::FindSetting(axis.setting());
    if (setting == nullptr) continue;
    const auto found = std::ranges::find(differing, setting->name);
    if (found == differing.end()) continue;
    names.push_back(*found);
    differing.erase(found);
  }
  names.insert(names.end(), differing.begin(), differing.end());
  return names;
}

// How many cells a grid of these settings would have, and how many of them a run.
std::pair<size_t, size_t> CellsOf(const std::vector<std::string>& settings,
                                  const std::vector<Run>& runs) {
  size_t cells = 1;
  for (const std::string& setting : settings) {
    std::set<std::string> values;
    for (const Run& run : runs) values.insert(domain::ValueText(run.effective_spec(), setting));
    cells = std::min<size_t>(cells * values.size(), size_t{1} << 32);
  }
  std::set<std::vector<std::string>> taken;
  for (const Run& run : runs) {
    std::vector<std::string> values;
    for (const std::string& setting : settings) {
      values.push_back(domain::ValueText(run.effective_spec(), setting));
    }
    taken.insert(std::move(values));
  }
  return {cells, taken.size()};
}

}  // namespace

PresetTable TableOfSweep(const Sweep& sweep, const std::vector<Run>& runs) {
  PresetTable table;
  table.set_quantity(PresetTable::QUANTITY_FINAL_LOSS);
  std::vector<std::string> settings = Varied(sweep, runs);
  const auto [cells, taken] = CellsOf(settings, runs);
  if (settings.size() >= 2 && static_cast<double>(taken) >= kFull * static_cast<double>(cells)) {
    table.set_column_setting(settings[1]);
    // The last label names a grid's rows; what is before it, the grid.
    std::vector<std::string> labels(settings.begin() + 2, settings.end());
    labels.push_back(settings[0]);
    settings = std::move(labels);
  }
  for (const std::string& setting : settings) table.add_row_settings(setting);
  return table;
}

void OrderDraws(const Sweep& sweep, std::vector<Run>& runs) {
  if (sweep.samples() == 0 || !sweep.axes(0).has_range()) return;
  const std::string& setting = sweep.axes(0).setting();
  std::ranges::stable_sort(runs, {}, [&setting](const Run& run) {
    return std::strtod(domain::ValueText(run.effective_spec(), setting).c_str(), nullptr);
  });
}

void OrderByLoss(PresetCells& cells) {
  std::ranges::stable_sort(cells.rows, {}, [](const TableRow& row) {
    const double loss = row.cells.empty() ? std::nan("") : row.cells.front().value;
    // Behind what diverged, which is infinite.
    return std::pair(std::isnan(loss), std::isnan(loss) ? 0 : loss);
  });
}

}  // namespace normlab::client
