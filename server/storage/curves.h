// Reading a run's series, whole or thinned out for drawing. Functions run inside the caller's read
// transaction.
#ifndef NORMLAB_SERVER_STORAGE_CURVES_H_
#define NORMLAB_SERVER_STORAGE_CURVES_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/domain/downsample.h"
#include "server/storage/levels.h"
#include "server/storage/segments.h"
#include "server/storage/sqlite.h"

namespace normlab::storage {

// NOT_FOUND when there is no such run, which may also mean: no longer.
absl::Status CheckRunExists(Database& database, std::string_view run);

struct CurveQuery {
  StepRange range;
  int32_t attempt = 0;     // number; 0 means the default curve
  int64_t max_points = 0;  // drawn; 0 means all, else at least domain::kKeptOfBlock
};

// What a query reads: steps of attempts, oldest first. The default curve is made of the latest
// attempt's steps and, below the checkpoint that each attempt went on from, its ancestors'.
// NOT_FOUND when there is no such attempt.
absl::StatusOr<std::vector<Segment>> SegmentsOf(Database& database, std::string_view run,
                                                const CurveQuery& query);

// Names of the series of these attempts, in the order in which they were declared.
absl::StatusOr<std::vector<std::string>> ReadSeriesNames(Database& database,
                                                         const std::vector<Segment>& segments);

// Reads one series, in as many transactions as the caller likes: what it reads never changes.
//
// When there are more points than wanted, buckets of 2^n neighbouring points are drawn, n as small
// as max_points allows. Buckets lie at multiples of their size, counted from the attempt's first
// point; so the same query gives the same points, and points that are added change only the last
// bucket, until all become twice as large. Each segment has buckets of its own.
class CurveReader {
 public:
  // Finds out which points there are. A series that no segment has is an empty one.
  static absl::StatusOr<CurveReader> Plan(Database& database, const std::vector<Segment>& segments,
                                          std::string name, int64_t max_points);

  const std::string& name() const { return name_; }
  // Points that there are, and how many of them will be drawn at most.
  int64_t points() const { return points_; }
  int64_t most_drawn() const { return max_points_ == 0 ? points_ : std::min(points_, max_points_); }

  // Reads on, at most `rows` rows, which is then lower by those read. True when all was read.
  absl::StatusOr<bool> Read(Database& database, int64_t& rows);

  // Once all was read: the points to draw, and what is known of all points together.
  const domain::Curve& drawn() const { return drawn_; }
  const domain::Block& whole() const { return whole_; }

 private:
  void ChooseBucket();
  void Take(int64_t number, const domain::Block& block);
  void DrawBuckets();

  std::string name_;
  int64_t max_points_ = 0;
  int64_t points_ = 0;
  int64_t bucket_points_ = 1;  // 1: every point is drawn
  std::vector<Slice> slices_;
  std::vector<BlockReader> readers_;  // of the slices
  size_t reading_ = 0;                // which of them
  int64_t bucket_ = -1;               // being filled, in this slice
  std::vector<domain::Block> buckets_;
  domain::Curve drawn_;
  domain::Block whole_;
};

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_CURVES_H_
