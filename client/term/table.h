// A table: aligned columns that fit a terminal, or tab-separated lines where there is none.
#ifndef NORMLAB_CLIENT_TERM_TABLE_H_
#define NORMLAB_CLIENT_TERM_TABLE_H_

#include <string>
#include <vector>

#include "client/term/style.h"
#include "client/term/terminal.h"
#include "client/term/text.h"

namespace normlab::client {

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    bool shrinks = false;   // its texts are cut when the terminal is narrow
    bool optional = false;  // it is left out when cutting is not enough, the rightmost one first
  };
  struct Cell {
    std::string text;  // clean
    std::string colour = "";
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void Add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }

  // Header and rows in aligned columns of at most `width` columns together; 0 means no limit.
  std::vector<std::string> Aligned(const Style& style, int width) const;
  // Rows with tabs between the cells, below a line of titles.
  std::vector<std::string> TabSeparated() const;

  // Aligned to a terminal, tab-separated to anything else.
  void PrintTo(Terminal& terminal) const;

 private:
  std::vector<int> Widths() const;
  // Leaves out columns (their width becomes 0) and cuts others until they fit.
  void Shrink(std::vector<int>& widths, int limit) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_TERM_TABLE_H_
