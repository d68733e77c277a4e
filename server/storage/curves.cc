#include "server/storage/curves.h"

#include <algorithm>
#include <set>
#include <utility>

#include "server/base/strings.h"
#include "server/storage/attempts.h"
#include "server/storage/lineage.h"

namespace normlab::storage {
namespace {

// Which steps of which attempts make the default curve, oldest attempt first.
std::vector<Segment> Lineage(const std::vector<AttemptRow>& attempts, StepRange range) {
  std::vector<Segment> segments;
  for (const LineagePart& part : LineageOf(attempts)) {
    const int64_t first = std::max(range.first, part.first_step);
    const int64_t last = std::min(range.last, part.last_step);
    if (first <= last) segments.push_back({part.attempt->id, part.attempt->number, first, last});
  }
  return segments;
}

// Buckets of `size` points that these slices touch.
int64_t CountBuckets(const std::vector<Slice>& slices, int64_t size) {
  int64_t count = 0;
  for (const Slice& slice : slices) {
    count += (slice.end - 1) / size - slice.begin / size + 1;
  }
  return count;
}

}  // namespace

absl::Status CheckRunExists(Database& database, std::string_view run) {
  Statement select = database.Prepared("SELECT 1 FROM runs WHERE id = ?1");
  select.Bind(1, run);
  if (select.Step() || !select.status().ok()) return select.status();
  return absl::NotFoundError(StrCat("there is no run ", run));
}

absl::StatusOr<std::vector<Segment>> SegmentsOf(Database& database, std::string_view run,
                                                const CurveQuery& query) {
  if (absl::Status status = CheckRunExists(database, run); !status.ok()) return status;
  const absl::StatusOr<std::vector<AttemptRow>> attempts = ReadAttempts(database, run);
  if (!attempts.ok()) return attempts.status();
  if (query.attempt == 0) return Lineage(*attempts, query.range);
  for (const AttemptRow& attempt : *attempts) {
    if (attempt.number != query.attempt) continue;
    return std::vector<Segment>{{attempt.id, attempt.number, query.range.first, query.range.last}};
  }
  return absl::NotFoundError(StrCat("run ", run, " has no attempt ", query.attempt));
}

absl::StatusOr<std::vector<std::string>> ReadSeriesNames(Database& database,
                                                         const std::vector<Segment>& segments) {
  std::vector<std::string> names;
  std::set<std::string> known;
  for (const Segment& segment : segments) {
    Statement select =
        database.Prepared("SELECT name FROM series WHERE attempt = ?1 ORDER BY position");
    select.Bind(1, segment.attempt);
    while (select.Step()) {
      std::string name = select.Text(0);
      if (known.insert(name).second) names.push_back(std::move(name));
    }
    if (!select.status().ok()) return select.status();
  }
  return names;
}

absl::StatusOr<CurveReader> CurveReader::Plan(Database& database,
                                              const std::vector<Segment>& segments,
                                              std::string name, int64_t max_points) {
  CurveReader reader;
  reader.name_ = std::move(name);
  reader.max_points_ = max_points;
  for (const Segment& segment : segments) {
    int64_t series = 0;
    {
      Statement select =
          database.Prepared("SELECT id FROM series WHERE attempt = ?1 AND name = ?2");
      select.Bind(1, segment.attempt);
      select.Bind(2, reader.name_);
      if (select.Step()) series = select.Integer(0);
      if (!select.status().ok()) return select.status();
    }
    if (series == 0) continue;
    const absl::StatusOr<Slice> slice = SliceOf(database, series, segment.first, segment.last);
    if (!slice.ok()) return slice.status();
    if (slice->begin < slice->end) reader.slices_.push_back(*slice);
    reader.points_ += slice->end - slice->begin;
  }
  reader.ChooseBucket();
  for (const Slice& slice : reader.slices_) {
    reader.readers_.emplace_back(slice, reader.bucket_points_);
  }
  return reader;
}

void CurveReader::ChooseBucket() {
  if (max_points_ == 0 || points_ <= max_points_) return;
  const int64_t wanted = max_points_ / domain::kKeptOfBlock;
  // Every slice has a bucket at least; where that is too many, DrawBuckets joins them.
  const auto fewest = static_cast<int64_t>(slices_.size());
  int64_t buckets = 0;
  do {
    bucket_points_ *= 2;
    buckets = CountBuckets(slices_, bucket_points_);
  } while (buckets > wanted && buckets > fewest);
}

absl::StatusOr<bool> CurveReader::Read(Database& database, int64_t& rows) {
  while (reading_ < readers_.size() && rows > 0) {
    const absl::StatusOr<bool> complete = readers_[reading_].Read(
        database, rows,
        [this](int64_t number, const domain::Block& block) { Take(number, block); });
    if (!complete.ok()) return complete.status();
    if (!*complete) continue;
    bucket_ = -1;
    if (++reading_ == readers_.size()) DrawBuckets();
  }
  return reading_ == readers_.size();
}

void CurveReader::Take(int64_t number, const domain::Block& block) {
  AppendBlock(whole_, block);
  if (bucket_points_ == 1) {
    drawn_.steps.push_back(block.first.step);
    drawn_.values.push_back(block.first.value);
    return;
  }
  if (number / bucket_points_ != bucket_) {
    bucket_ = number / bucket_points_;
    buckets_.emplace_back();
  }
  AppendBlock(buckets_.back(), block);
}

void CurveReader::DrawBuckets() {
  const size_t most = static_cast<size_t>(std::max<int64_t>(1, max_points_ / domain::kKeptOfBlock));
  size_t joined = 1;
  while ((buckets_.size() + joined - 1) / joined > most) joined *= 2;
  for (size_t i = 0; i < buckets_.size(); i += joined) {
    domain::Block bucket;
    for (size_t j = i; j < std::min(buckets_.size(), i + joined); ++j) {
      AppendBlock(bucket, buckets_[j]);
    }
    AppendKept(bucket, drawn_);
  }
  buckets_ = {};
}

}  // namespace normlab::storage
