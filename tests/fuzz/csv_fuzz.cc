// CSV of curves: a reader that knows RFC 4180 and nothing of us gets every name, step and double
// back, and every row has as many cells as the header.
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/export/csv.h"
#include "tests/fuzz/property.h"

namespace {

using normlab::exporter::Curve;
using normlab::exporter::Series;
using normlab::fuzz::Input;
using Rows = std::vector<std::vector<std::string>>;

// RFC 4180, but lines end in "\n".
Rows ReadCsv(std::string_view text) {
  Rows rows(1, {""});
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::string& cell = rows.back().back();
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      cell += text[i++];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (quoted || (c != ',' && c != '\n')) {
      cell += c;
    } else if (c == ',') {
      rows.back().emplace_back();
    } else {
      rows.push_back({""});
    }
  }
  REQUIRE(!quoted);
  REQUIRE(rows.back() == std::vector<std::string>{""});  // every line is ended
  rows.pop_back();
  return rows;
}

// A text as it was: one that a spreadsheet would take for a formula is marked with a ' in front.
std::string TextOf(const std::string& cell) {
  return cell.starts_with('\'') ? cell.substr(1) : cell;
}

double NumberOf(const std::string& text) {
  if (text == "NaN") return NAN;
  if (text == "Infinity") return INFINITY;
  if (text == "-Infinity") return -INFINITY;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  REQUIRE(error == std::errc() && end == text.data() + text.size());
  return number;
}

std::vector<Curve> MakeCurves(Input& input) {
  std::vector<Curve> curves;
  while (!input.empty() && curves.size() < 4) {
    Curve curve;
    curve.run_id = "01J" + std::to_string(curves.size());
    curve.name = input.Text();
    for (size_t series = input.Value<uint8_t>() % 4; series > 0; --series) {
      Series one;
      one.name = series == 1 ? "loss" : std::string(input.Text()) + std::to_string(series);
      int64_t step = 0;
      for (size_t count = input.Value<uint8_t>() % 32; count > 0; --count) {
        step += 1 + input.Value<uint8_t>() % 4;
        one.steps.push_back(step);
        one.values.push_back(input.Value<double>());
      }
      curve.series.push_back(std::move(one));
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

size_t ColumnOf(const std::vector<std::string>& header, std::string_view name) {
  for (size_t i = 0; i < header.size(); ++i) {
    if (TextOf(header[i]) == name) return i;
  }
  REQUIRE(!"every series has a column");
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const std::vector<Curve> curves = MakeCurves(input);
  std::string text;
  const int64_t written =
      normlab::exporter::WriteCsv(curves, {}, [&text](std::string_view piece) { text += piece; });
  const Rows rows = ReadCsv(text);
  REQUIRE(rows.size() == static_cast<size_t>(written) + 1);
  const std::vector<std::string>& header = rows.front();
  size_t row = 1;
  for (const Curve& curve : curves) {
    std::map<int64_t, std::map<std::string, double>> expected;
    for (const Series& one : curve.series) {
      for (size_t i = 0; i < one.steps.size(); ++i) {
        expected[one.steps[i]][one.name] = one.values[i];
      }
    }
    for (const auto& [step, values] : expected) {
      REQUIRE(row < rows.size() && rows[row].size() == header.size());
      REQUIRE(TextOf(rows[row][0]) == curve.name);
      REQUIRE(rows[row][ColumnOf(header, "step")] == std::to_string(step));
      size_t filled = 0;
      for (const std::string& cell : rows[row]) filled += cell.empty() ? 0 : 1;
      for (const auto& [name, value] : values) {
        const double read = NumberOf(rows[row][ColumnOf(header, name)]);
        REQUIRE(std::isnan(value)
                    ? std::isnan(read)
                    : std::bit_cast<uint64_t>(read) == std::bit_cast<uint64_t>(value));
      }
      const size_t names = (curve.name.empty() ? 0 : 1) + (header[1] == "run_id" ? 1 : 0) + 1;
      REQUIRE(filled == names + values.size());
      ++row;
    }
  }
  REQUIRE(row == rows.size());
  return 0;
}
