#include "server/storage/levels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "server/base/strings.h"

namespace normlab::storage {
namespace {

using domain::Block;
using domain::Point;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Points of a block of a level.
int64_t SizeOf(int level) {
  int64_t size = 1;
  for (; level > 0; --level) size *= kFanOut;
  return size;
}

// As in table points: NULL is NaN.
void BindValue(Statement& statement, int parameter, double value) {
  if (std::isnan(value)) {
    statement.BindNull(parameter);
  } else {
    statement.Bind(parameter, value);
  }
}

double ValueOf(const Statement& row, int column) {
  return row.IsNull(column) ? kNan : row.Real(column);
}

// Two columns: a step, NULL when there is no such point, and a value.
void BindPoint(Statement& statement, int parameter, const std::optional<Point>& point) {
  if (!point) return;  // NULL is what an unbound parameter is
  statement.Bind(parameter, point->step);
  BindValue(statement, parameter + 1, point->value);
}

std::optional<Point> PointOf(const Statement& row, int column) {
  if (row.IsNull(column)) return std::nullopt;
  return Point{row.Integer(column), ValueOf(row, column + 1)};
}

absl::Status InsertBlock(Database& database, int64_t series, int level, int64_t number,
                         const Block& block) {
  Statement insert = database.Prepared(
      "INSERT INTO levels (series, level, first_step, block, last_step, first_value, last_value, "
      "lowest_step, lowest, highest_step, highest, non_finite, bad_step, bad) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)");
  insert.Bind(1, series);
  insert.Bind(2, int64_t{level});
  insert.Bind(3, block.first.step);
  insert.Bind(4, number);
  insert.Bind(5, block.last.step);
  BindValue(insert, 6, block.first.value);
  BindValue(insert, 7, block.last.value);
  BindPoint(insert, 8, block.lowest);
  BindPoint(insert, 10, block.highest);
  insert.Bind(12, block.non_finite);
  BindPoint(insert, 13, block.first_bad);
  return insert.Run();
}

// Blocks of a level that begin at `from_step` or later: columns as BlockOf reads them.
Statement SelectBlocks(Database& database, int64_t series, int level, int64_t from_step,
                       int64_t limit) {
  Statement select = database.Prepared(
      "SELECT block, first_step, first_value, last_step, last_value, lowest_step, lowest, "
      "highest_step, highest, non_finite, bad_step, bad FROM levels "
      "WHERE series = ?1 AND level = ?2 AND first_step >= ?3 ORDER BY first_step LIMIT ?4");
  select.Bind(1, series);
  select.Bind(2, int64_t{level});
  select.Bind(3, from_step);
  select.Bind(4, limit);
  return select;
}

Block BlockOf(const Statement& row, int64_t points) {
  Block block;
  block.points = points;
  block.first = *PointOf(row, 1);
  block.last = *PointOf(row, 3);
  block.lowest = PointOf(row, 5);
  block.highest = PointOf(row, 7);
  block.non_finite = row.Integer(9);
  block.first_bad = PointOf(row, 10);
  return block;
}

Statement SelectPoints(Database& database, int64_t series, int64_t from_step, int64_t limit) {
  Statement select = database.Prepared(
      "SELECT step, value FROM points WHERE series = ?1 AND step >= ?2 ORDER BY step LIMIT ?3");
  select.Bind(1, series);
  select.Bind(2, from_step);
  select.Bind(3, limit);
  return select;
}

absl::StatusOr<int> TopLevel(Database& database, int64_t series) {
  Statement select =
      database.Prepared("SELECT level FROM levels WHERE series = ?1 ORDER BY level DESC LIMIT 1");
  select.Bind(1, series);
  const int level = select.Step() ? static_cast<int>(select.Integer(0)) : 0;
  if (!select.status().ok()) return select.status();
  return level;
}

}  // namespace

absl::StatusOr<OpenLevels> OpenLevels::Restore(Database& database, int64_t series) {
  const absl::StatusOr<int> top = TopLevel(database, series);
  if (!top.ok()) return top.status();
  OpenLevels levels;
  levels.open_.resize(static_cast<size_t>(*top) + 1);
  int64_t from_step = std::numeric_limits<int64_t>::min();
  for (int level = *top; level > 0; --level) {
    const int64_t size = SizeOf(level);
    Statement rows = SelectBlocks(database, series, level, from_step, -1);
    while (rows.Step()) {
      const Block block = BlockOf(rows, size);
      AppendBlock(levels.open_[static_cast<size_t>(level)], block);
      levels.points_ += size;
      from_step = block.last.step + 1;
    }
    if (!rows.status().ok()) return rows.status();
  }
  Statement rows = SelectPoints(database, series, from_step, -1);
  while (rows.Step()) {
    AddPoint(levels.open_[0], {rows.Integer(0), ValueOf(rows, 1)});
    ++levels.points_;
  }
  if (!rows.status().ok()) return rows.status();
  return levels;
}

absl::Status OpenLevels::Add(Database& database, int64_t series, Point point) {
  if (open_.empty()) open_.emplace_back();
  AddPoint(open_[0], point);
  ++points_;
  int64_t size = kFanOut;
  for (size_t i = 0; points_ % size == 0; ++i, size *= kFanOut) {
    const absl::Status status =
        InsertBlock(database, series, static_cast<int>(i) + 1, points_ / size - 1, open_[i]);
    if (!status.ok()) return status;
    if (i + 1 == open_.size()) open_.emplace_back();
    AppendBlock(open_[i + 1], open_[i]);
    open_[i] = {};
  }
  return absl::OkStatus();
}

absl::Status BuildLevels(Database& database) {
  std::vector<int64_t> all;
  {
    Statement select = database.Prepared("SELECT id FROM series ORDER BY id");
    while (select.Step()) all.push_back(select.Integer(0));
    if (!select.status().ok()) return select.status();
  }
  for (const int64_t series : all) {
    OpenLevels levels;
    Statement rows =
        SelectPoints(database, series, std::numeric_limits<int64_t>::min(), /*limit=*/-1);
    while (rows.Step()) {
      const absl::Status status = levels.Add(database, series, {rows.Integer(0), ValueOf(rows, 1)});
      if (!status.ok()) return status;
    }
    if (!rows.status().ok()) return rows.status();
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CountUpTo(Database& database, int64_t series, int64_t step) {
  int64_t count = 0;
  int64_t from_step = std::numeric_limits<int64_t>::min();
  {
    Statement select = database.Prepared(
        "SELECT block, first_step, last_step FROM levels "
        "WHERE series = ?1 AND level = 1 AND first_step <= ?2 ORDER BY first_step DESC LIMIT 1");
    select.Bind(1, series);
    select.Bind(2, step);
    if (select.Step()) {
      const bool whole = select.Integer(2) <= step;
      count = (select.Integer(0) + (whole ? 1 : 0)) * kFanOut;
      from_step = whole ? select.Integer(2) + 1 : select.Integer(1);
    }
    if (!select.status().ok()) return select.status();
  }
  Statement select =
      database.Prepared("SELECT count(*) FROM points WHERE series = ?1 AND step BETWEEN ?2 AND ?3");
  select.Bind(1, series);
  select.Bind(2, from_step);
  select.Bind(3, step);
  if (!select.Step()) return select.status();
  return count + select.Integer(0);
}

absl::StatusOr<Slice> SliceOf(Database& database, int64_t series, int64_t first, int64_t last) {
  Slice slice = {series, 0, 0, first};
  if (first > last) return slice;
  if (first > 0) {  // steps count from 1
    const absl::StatusOr<int64_t> before = CountUpTo(database, series, first - 1);
    if (!before.ok()) return before.status();
    slice.begin = *before;
  }
  const absl::StatusOr<int64_t> end = CountUpTo(database, series, last);
  if (!end.ok()) return end.status();
  slice.end = *end;
  return slice;
}

BlockReader::BlockReader(const Slice& slice, int64_t largest) : slice_(slice) {
  for (int64_t size = kFanOut; size <= largest; size *= kFanOut) ++coarsest_;
}

absl::StatusOr<bool> BlockReader::Read(Database& database, int64_t& rows, const Sink& sink) {
  while (slice_.begin < slice_.end && rows > 0) {
    // The coarsest level that has a block beginning here and ending inside the slice; it is read
    // up to where a block of the next one begins.
    int level = 0;
    int64_t size = 1;
    while (level < coarsest_ && slice_.begin % (size * kFanOut) == 0 &&
           slice_.begin + size * kFanOut <= slice_.end) {
      ++level;
      size *= kFanOut;
    }
    int64_t blocks = (slice_.end - slice_.begin) / size;
    if (level < coarsest_) blocks = std::min(blocks, kFanOut - slice_.begin / size % kFanOut);
    blocks = std::min(blocks, rows);
    const absl::StatusOr<int64_t> read =
        level == 0 ? ReadPoints(database, blocks, sink) : ReadLevel(database, level, blocks, sink);
    if (!read.ok()) return read.status();
    if (*read < blocks) {
      return absl::DataLossError(StrCat("level ", level, " of series ", slice_.series,
                                        " lacks a row at point ", slice_.begin));
    }
    rows -= blocks;
  }
  return slice_.begin >= slice_.end;
}

absl::StatusOr<int64_t> BlockReader::ReadPoints(Database& database, int64_t limit,
                                                const Sink& sink) {
  Statement rows = SelectPoints(database, slice_.series, slice_.from_step, limit);
  int64_t read = 0;
  for (; rows.Step(); ++read) {
    Block block;
    AddPoint(block, {rows.Integer(0), ValueOf(rows, 1)});
    sink(slice_.begin++, block);
    slice_.from_step = block.last.step + 1;
  }
  if (!rows.status().ok()) return rows.status();
  return read;
}

absl::StatusOr<int64_t> BlockReader::ReadLevel(Database& database, int level, int64_t limit,
                                               const Sink& sink) {
  const int64_t size = SizeOf(level);
  Statement rows = SelectBlocks(database, slice_.series, level, slice_.from_step, limit);
  int64_t read = 0;
  for (; rows.Step() && rows.Integer(0) == slice_.begin / size; ++read) {
    const Block block = BlockOf(rows, size);
    sink(slice_.begin, block);
    slice_.begin += size;
    slice_.from_step = block.last.step + 1;
  }
  if (!rows.status().ok()) return rows.status();
  return read;
}

}  // namespace normlab::storage
