#include "client/preset_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "server/domain/settings.h"

namespace normlab::client {
namespace {

using exporter::Curve;
using normlab::v1::Preset;
using normlab::v1::PresetExpectation;
using normlab::v1::Run;
using Quantities = normlab::v1::PresetTable;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kSlopeFrom = 6;  // columns below are not of the law yet

std::vector<double> Finite(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  return values;
}

double Mean(const std::vector<double>& values) {
  if (values.empty()) return kNone;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Median(std::vector<double> values) {
  if (values.empty()) return kNone;
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

// A loss that is no number is one beyond every bound: the median of a row may still be finite.
double FinalLoss(const Run& run, const Curve& curve) {
  const exporter::Series* loss = curve.Find("loss");
  if (loss == nullptr || loss->values.empty()) return kNone;
  if (run.state() != Run::STATE_SUCCEEDED && run.state() != Run::STATE_DIVERGED) return kNone;
  const double last = loss->values.back();
  return std::isfinite(last) && run.state() == Run::STATE_SUCCEEDED
             ? last
             : std::numeric_limits<double>::infinity();
}

std::string LastFfnSeries(const Run& run) {
  return fmt::format("tensor/block_{}/mlp_out/kernel/gradient_norm",
                     run.effective_spec().layers() - 1);
}

struct Value {
  std::string column;
  double value;
};

// What one run puts into the table.
std::vector<Value> ValuesOf(const normlab::v1::PresetTable& table, const Run& run,
                            const Curve& curve) {
  const std::string column = table.column_setting().empty()
                                 ? ""
                                 : domain::ValueText(run.effective_spec(), table.column_setting());
  switch (table.quantity()) {
    case Quantities::QUANTITY_LAST_FFN_GRADIENT:
      return {{column, FirstValue(curve, LastFfnSeries(run))}};
    case Quantities::QUANTITY_STREAM: {
      std::vector<Value> values;
      for (int64_t block = 1; block <= run.effective_spec().layers(); ++block) {
        const double rms = FirstValue(curve, BlockSeries(block, "stream_rms"));
        values.push_back({std::to_string(block), rms * rms});
      }
      return values;
    }
    default:
      return {{column, FinalLoss(run, curve)}};
  }
}

std::string ValueTitle(const normlab::v1::PresetTable& table) {
  switch (table.quantity()) {
    case Quantities::QUANTITY_LAST_FFN_GRADIENT:
      return "gradient norm";
    case Quantities::QUANTITY_STREAM:
      return "mean square";
    default:
      return "final loss";
  }
}

std::vector<std::string> LabelsOf(const normlab::v1::PresetTable& table,
                                  const normlab::v1::RunSpec& spec) {
  std::vector<std::string> labels;
  for (const std::string& setting : table.row_settings()) {
    labels.push_back(domain::ValueText(spec, setting));
  }
  return labels;
}

TableRow& RowOf(std::vector<TableRow>& rows, const std::vector<std::string>& labels,
                const std::string& colour) {
  for (TableRow& row : rows) {
    if (row.labels == labels) return row;
  }
  rows.push_back({labels, colour, {}, {}});
  return rows.back();
}

TableCell& CellOf(TableRow& row, const std::string& column) {
  for (TableCell& cell : row.cells) {
    if (cell.column == column) return cell;
  }
  row.cells.push_back({.column = column, .values = {}, .expected = std::nullopt});
  return row.cells.back();
}

// Least squares of log value over log column.
double Slope(const TableRow& row) {
  std::vector<double> x, y;
  for (const TableCell& cell : row.cells) {
    const double column = std::strtod(cell.column.c_str(), nullptr);
    if (column < kSlopeFrom || !(cell.value > 0) || std::isinf(cell.value)) continue;
    x.push_back(std::log(column));
    y.push_back(std::log(cell.value));
  }
  if (x.size() < 2) return kNone;
  const double x_mean = Mean(x), y_mean = Mean(y);
  double product = 0, square = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    product += (x[i] - x_mean) * (y[i] - y_mean);
    square += (x[i] - x_mean) * (x[i] - x_mean);
  }
  return product / square;
}

// Cells that are computed from others, where the preset expects something of them.
void AddDerived(const Preset& preset, std::vector<TableRow>& rows) {
  if (rows.empty() || preset.table().expectations().empty()) return;
  const auto add = [&preset](TableRow& row, const char* column, double value) {
    const bool expected =
        std::ranges::any_of(preset.table().expectations(), [&](const PresetExpectation& e) {
          return e.column() == column && std::ranges::equal(e.row(), row.labels);
        });
    if (!expected || std::isnan(value)) return;
    row.cells.push_back({column, {value}, value, std::nullopt});
  };
  for (TableRow& row : rows) add(row, "slope", Slope(row));
  // The first row of a part of the preset may be another one.
  if (rows.front().labels != LabelsOf(preset.table(), preset.runs(0).spec())) return;
  const double first = rows.front().cells.front().value;
  for (size_t i = 1; i < rows.size(); ++i) {
    add(rows[i], "minus first", rows[i].cells.front().value - first);
  }
}

void AddExpectations(const Preset& preset, std::vector<TableRow>& rows) {
  for (const PresetExpectation& expected : preset.table().expectations()) {
    for (TableRow& row : rows) {
      if (!std::ranges::equal(row.labels, expected.row())) continue;
      for (TableCell& cell : row.cells) {
        if (cell.column == expected.column()) cell.expected = expected;
      }
    }
  }
}

}  // namespace

bool TableCell::Holds() const {
  if (!HasBand()) return true;
  if (std::isnan(value)) return false;
  return (!expected->has_minimum() || value >= expected->minimum()) &&
         (!expected->has_maximum() || value <= expected->maximum());
}

const TableCell* TableRow::Find(const std::string& column) const {
  for (const TableCell& cell : cells) {
    if (cell.column == column) return &cell;
  }
  return nullptr;
}

int PresetCells::BandCount() const {
  int count = 0;
  for (const TableRow& row : rows) {
    count += static_cast<int>(std::ranges::count_if(row.cells, &TableCell::HasBand));
  }
  return count;
}

int PresetCells::BrokenBandCount() const {
  int count = 0;
  for (const TableRow& row : rows) {
    count += static_cast<int>(
        std::ranges::count_if(row.cells, [](const TableCell& cell) { return !cell.Holds(); }));
  }
  return count;
}

PresetCells Tabulate(const Preset& preset, const std::vector<Run>& runs,
                     const std::vector<Curve>& curves, bool judge) {
  const normlab::v1::PresetTable& table = preset.table();
  PresetCells cells;
  cells.label_titles.assign(table.row_settings().begin(), table.row_settings().end());
  cells.column_title =
      table.quantity() == Quantities::QUANTITY_STREAM ? "block" : table.column_setting();
  cells.value_title = ValueTitle(table);
  cells.is_loss = table.quantity() == Quantities::QUANTITY_FINAL_LOSS;
  for (size_t i = 0; i < runs.size() && i < curves.size(); ++i) {
    TableRow& row = RowOf(cells.rows, LabelsOf(table, runs[i].effective_spec()), runs[i].colour());
    row.runs.push_back(i);
    for (const Value& value : ValuesOf(table, runs[i], curves[i])) {
      CellOf(row, value.column).values.push_back(value.value);
    }
  }
  for (TableRow& row : cells.rows) {
    for (TableCell& cell : row.cells) {
      cell.value = cells.is_loss ? Median(Finite(cell.values)) : Mean(Finite(cell.values));
    }
  }
  AddDerived(preset, cells.rows);
  if (judge) AddExpectations(preset, cells.rows);
  return cells;
}

std::vector<std::string> SeriesOfPreset(const Preset& preset, const Run& run) {
  std::vector<std::string> names = {"loss", "gradient_norm", "learning_rate"};
  const auto add_blocks = [&](const char* name) {
    for (int64_t block = 1; block <= run.effective_spec().layers(); ++block) {
      names.push_back(BlockSeries(block, name));
    }
  };
  if (preset.table().quantity() == Quantities::QUANTITY_STREAM) add_blocks("stream_rms");
  if (preset.table().quantity() == Quantities::QUANTITY_LAST_FFN_GRADIENT) {
    names.push_back(LastFfnSeries(run));
    for (const char* name : {"jacobian_gain", "jacobian_largest", "jacobian_distance"}) {
      add_blocks(name);
    }
  }
  return names;
}

std::string BlockSeries(int64_t block, const std::string& name) {
  return fmt::format("block/{}/{}", block, name);
}

std::optional<IdentityPath> IdentityPathOf(const Run& run, const Curve& curve) {
  std::vector<double> gains, distances;
  IdentityPath path;
  for (int64_t block = 1; block <= run.effective_spec().layers(); ++block) {
    gains.push_back(FirstValue(curve, BlockSeries(block, "jacobian_gain")));
    distances.push_back(FirstValue(curve, BlockSeries(block, "jacobian_distance")));
    const double largest = FirstValue(curve, BlockSeries(block, "jacobian_largest"));
    if (largest > path.largest) path.largest = largest;
  }
  gains = Finite(gains);
  distances = Finite(distances);
  if (gains.empty() || distances.empty()) return std::nullopt;
  path.gain = Mean(gains);
  path.distance = Mean(distances);
  return path;
}

double FirstValue(const Curve& curve, const std::string& series) {
  const exporter::Series* found = curve.Find(series);
  return found == nullptr || found->values.empty() ? kNone : found->values.front();
}

}  // namespace normlab::client
