#include "client/preset_table_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "client/term/table.h"
#include "server/export/number_text.h"

namespace normlab::client {
namespace {

constexpr const char* kGood = "#138a72";
constexpr const char* kBad = "#b42318";
constexpr size_t kMostColumns = 8;  // of a row on the terminal

std::string SpreadText(const TableCell& cell) {
  if (cell.values.size() < 2 || std::isnan(cell.value)) return "";
  const auto [low, high] = std::ranges::minmax_element(cell.values);
  return CellValueText(*low) + " – " + CellValueText(*high);
}

std::string BandText(const TableCell& cell) {
  if (!cell.HasBand()) return "";
  const auto& expected = *cell.expected;
  const std::string low = exporter::ShortNumberText(expected.minimum());
  const std::string high = exporter::ShortNumberText(expected.maximum());
  if (expected.has_minimum() && expected.has_maximum()) return low + " – " + high;
  return expected.has_minimum() ? "above " + low : "below " + high;
}

Table::Cell MarkOf(const TableCell& cell) {
  if (!cell.HasBand()) return {""};
  return cell.Holds() ? Table::Cell{"✓ holds", kGood} : Table::Cell{"✗ outside", kBad};
}

// Blocks between the first and the last are for the files.
bool IsShown(const TableRow& row, const TableCell& cell) {
  return row.cells.size() <= kMostColumns || &cell == &row.cells.front() ||
         &cell == &row.cells.back() || cell.expected;
}

// Calls `visit` with every row and cell, in order.
void ForEachCell(const PresetCells& cells,
                 const std::function<void(const TableRow&, const TableCell&)>& visit) {
  for (const TableRow& row : cells.rows) {
    for (const TableCell& cell : row.cells) visit(row, cell);
  }
}

// As RFC 4180 has it: values of settings may be any text.
std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string CsvNumber(bool present, double value) {
  return present ? exporter::NumberText(value) : "";
}

nlohmann::ordered_json JsonNumber(double value) {
  if (std::isfinite(value)) return value;
  return exporter::NumberText(value);
}

}  // namespace

std::string CellValueText(double value) {
  if (std::isnan(value)) return "none";
  return std::isinf(value) ? "diverged" : exporter::ShortNumberText(value);
}

void PrintCells(const PresetCells& cells, Terminal& terminal) {
  std::vector<Table::Column> columns;
  for (const std::string& title : cells.label_titles) columns.push_back({title});
  if (!cells.column_title.empty()) columns.push_back({cells.column_title});
  const bool derived = std::ranges::any_of(
      cells.rows, [](const TableRow& row) { return row.Find("minus first") != nullptr; });
  if (derived) columns.push_back({""});
  columns.insert(columns.end(), {{cells.value_title, Align::kRight},
                                 {"seeds", Align::kRight},
                                 {"expected", Align::kRight},
                                 {"within", Align::kRight},
                                 {""}});
  Table table(columns);
  ForEachCell(cells, [&](const TableRow& row, const TableCell& cell) {
    if (!IsShown(row, cell)) return;
    std::vector<Table::Cell> line;
    for (const std::string& label : row.labels) line.push_back({Clean(label), row.colour});
    if (!cells.column_title.empty() || derived) line.push_back({cell.column});
    const bool measured = cell.expected && cell.expected->value() != 0;
    const std::string expected = measured ? exporter::ShortNumberText(cell.expected->value()) : "";
    line.insert(line.end(), {{CellValueText(cell.value)},
                             {SpreadText(cell)},
                             {expected},
                             {BandText(cell)},
                             MarkOf(cell)});
    table.Add(std::move(line));
  });
  // Aligned also where there is no terminal: a log is read by people.
  const int width = terminal.smart() ? terminal.size().columns : 0;
  for (const std::string& line : table.Aligned(terminal.style(), width)) terminal.Print(line);
}

std::string CellsCsv(const PresetCells& cells) {
  std::string csv;
  for (const std::string& title : cells.label_titles) csv += title + ",";
  csv += (cells.column_title.empty() ? "column" : cells.column_title) +
         ",value,low,high,runs,expected,minimum,maximum,holds\n";
  ForEachCell(cells, [&csv](const TableRow& row, const TableCell& cell) {
    for (const std::string& label : row.labels) csv += Quoted(label) + ",";
    const auto [low, high] = std::ranges::minmax_element(cell.values);
    const bool spread = !cell.values.empty();
    const bool expected = cell.expected.has_value();
    const bool measured = expected && cell.expected->value() != 0;
    csv += fmt::format("{},{},{},{},{},{},{},{},{}\n", Quoted(cell.column),
                       exporter::NumberText(cell.value), spread ? exporter::NumberText(*low) : "",
                       spread ? exporter::NumberText(*high) : "", cell.values.size(),
                       CsvNumber(measured, measured ? cell.expected->value() : 0),
                       CsvNumber(expected && cell.expected->has_minimum(),
                                 expected ? cell.expected->minimum() : 0),
                       CsvNumber(expected && cell.expected->has_maximum(),
                                 expected ? cell.expected->maximum() : 0),
                       cell.HasBand() ? (cell.Holds() ? "true" : "false") : "");
  });
  return csv;
}

nlohmann::ordered_json CellsJson(const PresetCells& cells) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  ForEachCell(cells, [&](const TableRow& row, const TableCell& cell) {
    nlohmann::ordered_json settings;
    for (size_t i = 0; i < row.labels.size(); ++i) settings[cells.label_titles[i]] = row.labels[i];
    nlohmann::ordered_json json = {{"settings", settings}};
    if (!cell.column.empty()) json["column"] = cell.column;
    json["value"] = JsonNumber(cell.value);
    nlohmann::ordered_json values = nlohmann::ordered_json::array();
    for (const double value : cell.values) values.push_back(JsonNumber(value));
    json["values"] = values;
    if (cell.expected) {
      if (cell.expected->value() != 0) json["expected"] = cell.expected->value();
      if (cell.expected->has_minimum()) json["minimum"] = cell.expected->minimum();
      if (cell.expected->has_maximum()) json["maximum"] = cell.expected->maximum();
    }
    if (cell.HasBand()) json["holds"] = cell.Holds();
    list.push_back(std::move(json));
  });
  return list;
}

}  // namespace normlab::client
