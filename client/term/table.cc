#include "client/term/table.h"

#include <algorithm>

namespace normlab::client {
namespace {

constexpr int kGap = 2;
constexpr int kNarrowest = 6;
constexpr int kReadable = 16;  // before a text is cut shorter, optional columns go

std::string WithoutTrailingSpace(std::string line) {
  const size_t end = line.find_last_not_of(' ');
  line.erase(end == std::string::npos ? 0 : end + 1);
  return line;
}

}  // namespace

std::vector<int> Table::Widths() const {
  std::vector<int> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    int width = DisplayWidth(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, DisplayWidth(row[i].text));
    widths.push_back(width);
  }
  return widths;
}

void Table::Shrink(std::vector<int>& widths, int limit) const {
  int over = -kGap - limit;
  for (const int width : widths) over += width + kGap;
  const auto cut = [&](bool shrinking, int narrowest) {
    for (size_t i = 0; i < columns_.size() && over > 0; ++i) {
      if (columns_[i].shrinks != shrinking || widths[i] == 0) continue;
      const int given = std::clamp(widths[i] - narrowest, 0, over);
      widths[i] -= given;
      over -= given;
    }
  };
  cut(/*shrinking=*/true, kReadable);
  for (size_t i = columns_.size(); i-- > 0 && over > 0;) {
    if (!columns_[i].optional) continue;
    over -= widths[i] + kGap;
    widths[i] = 0;
  }
  cut(/*shrinking=*/true, kNarrowest);
  cut(/*shrinking=*/false, kNarrowest);
}

std::vector<std::string> Table::Aligned(const Style& style, int width) const {
  std::vector<int> widths = Widths();
  if (width > 0) Shrink(widths, width);
  const std::string gap(kGap, ' ');
  std::vector<std::string> lines;
  std::string header;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (widths[i] == 0) continue;
    header += (header.empty() ? "" : gap) + Fit(columns_[i].title, widths[i], columns_[i].align);
  }
  lines.push_back(style.Dim(WithoutTrailingSpace(header)));
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] == 0) continue;
      const std::string cell = Fit(row[i].text, widths[i], columns_[i].align);
      if (!line.empty()) line += gap;
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
