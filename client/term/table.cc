#include "client/term/table.h"

#include <algorithm>
#include <numeric>

namespace normlab::client {
namespace {

constexpr int kGap = 2;
constexpr int kNarrowest = 6;

std::string WithoutTrailingSpace(std::string line) {
  const size_t end = line.find_last_not_of(' ');
  line.erase(end == std::string::npos ? 0 : end + 1);
  return line;
}

}  // namespace

std::vector<int> Table::Widths(int limit) const {
  std::vector<int> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    int width = DisplayWidth(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, DisplayWidth(row[i].text));
    widths.push_back(width);
  }
  const int gaps = kGap * (static_cast<int>(columns_.size()) - 1);
  int over = limit > 0 ? std::accumulate(widths.begin(), widths.end(), gaps) - limit : 0;
  // First the columns that say they can shrink, then all others.
  for (const bool shrinking : {true, false}) {
    for (size_t i = 0; i < columns_.size() && over > 0; ++i) {
      if (columns_[i].shrinks != shrinking) continue;
      const int given = std::clamp(widths[i] - kNarrowest, 0, over);
      widths[i] -= given;
      over -= given;
    }
  }
  return widths;
}

std::vector<std::string> Table::Aligned(const Style& style, int width) const {
  const std::vector<int> widths = Widths(width);
  const std::string gap(kGap, ' ');
  std::vector<std::string> lines;
  std::string header;
  for (size_t i = 0; i < columns_.size(); ++i) {
    header += (i > 0 ? gap : "") + Fit(columns_[i].title, widths[i], columns_[i].align);
  }
  lines.push_back(style.Dim(WithoutTrailingSpace(header)));
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string cell = Fit(row[i].text, widths[i], columns_[i].align);
      if (i > 0) line += gap;
      line += row[i].colour.empty() ? cell : style.Paint(cell, row[i].colour);
    }
    lines.push_back(WithoutTrailingSpace(line));
  }
  return lines;
}

std::vector<std::string> Table::TabSeparated() const {
  std::vector<std::string> lines(1);
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (i > 0) lines[0] += '\t';
    lines[0] += columns_[i].title;
  }
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += '\t';
      line += row[i].text;
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

void Table::PrintTo(Terminal& terminal) const {
  const std::vector<std::string> lines =
      terminal.smart() ? Aligned(terminal.style(), terminal.size().columns) : TabSeparated();
  for (const std::string& line : lines) terminal.Print(line);
}

}  // namespace normlab::client
