// Curves of any length from few rows: table `levels` holds each series a second time, as blocks of
// 64 points (level 1), of 64 * 64 (level 2), and so on. Points have numbers, 0, 1, ... in their
// series; block b of level k holds those from b * 64^k on. A block is written once, when it is
// full, in the transaction of its last point, so blocks never change.
//
//   OpenLevels levels;                                   // writing: one a series
//   levels.Add(database, series, {step, value});
//
//   BlockReader reader({series, begin, end, from_step}, /*largest=*/4096);
//   while (!*reader.Read(database, rows, sink)) {}       // reading: each call in a transaction
//
// Functions run inside the caller's transaction.
#ifndef NORMLAB_SERVER_STORAGE_LEVELS_H_
#define NORMLAB_SERVER_STORAGE_LEVELS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/domain/downsample.h"
#include "server/storage/sqlite.h"

namespace normlab::storage {

inline constexpr int64_t kFanOut = 64;

// The blocks of one series that are not full yet. About 120 bytes a level.
class OpenLevels {
 public:
  // Of a series with points: from those behind its last full blocks, fewer than 64 rows a level.
  static absl::StatusOr<OpenLevels> Restore(Database& database, int64_t series);

  // Counts a point that is being stored, and inserts the blocks that it fills.
  absl::Status Add(Database& database, int64_t series, domain::Point point);

 private:
  int64_t points_ = 0;
  std::vector<domain::Block> open_;  // [k] becomes a row of level k + 1
};

// Inserts the blocks of every series, for a database that has none yet.
absl::Status BuildLevels(Database& database);

// How many points a series has at steps up to and with `step`.
absl::StatusOr<int64_t> CountUpTo(Database& database, int64_t series, int64_t step);

// Some neighbouring points of a series, by number.
struct Slice {
  int64_t series = 0;
  int64_t begin = 0, end = 0;
  int64_t from_step = 0;  // of point `begin`, or lower but above that of the point before
};

// The slice of the points at steps `first` to `last`.
absl::StatusOr<Slice> SliceOf(Database& database, int64_t series, int64_t first, int64_t last);

// Reads a slice as few blocks: the largest whole ones inside it, and at its ends smaller ones and
// points. What is read never changes, so a slice may be read in several transactions.
class BlockReader {
 public:
  // `number` is that of the block's first point.
  using Sink = std::function<void(int64_t number, const domain::Block& block)>;

  // No block has more than `largest` points.
  BlockReader(const Slice& slice, int64_t largest);

  // Reads on, at most `rows` rows, which is then lower by those read. True when all was read.
  // DATA_LOSS when the database lacks a row that must be there.
  absl::StatusOr<bool> Read(Database& database, int64_t& rows, const Sink& sink);

 private:
  absl::StatusOr<int64_t> ReadPoints(Database& database, int64_t limit, const Sink& sink);
  absl::StatusOr<int64_t> ReadLevel(Database& database, int level, int64_t limit, const Sink& sink);

  Slice slice_;  // what is left of it
  int coarsest_ = 0;
};

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_LEVELS_H_
