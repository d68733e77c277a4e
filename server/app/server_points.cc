// The part of the api that reads every point of a run, page by page.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/app/server_api.h"
#include "server/domain/violations.h"
#include "server/storage/attempts.h"
#include "server/storage/curves.h"
#include "server/storage/history.h"

namespace normlab::app {
namespace {

using storage::Segment;

// Of a piece: a message of a hundred kilobytes or two, a read of some milliseconds.
constexpr int64_t kPointsOfPage = 10'000;

class StoredPoints : public PointsReader {
 public:
  StoredPoints(storage::Store& store, v1::ReadPointsRequest request)
      : store_(store),
        request_(std::move(request)),
        names_(request_.names().begin(), request_.names().end()) {}

  // Settles what there is to read; what is stored later is left out.
  absl::Status Plan() {
    return store_.Read([this](storage::Database& database) {
      absl::StatusOr<std::vector<Segment>> segments = FindSegments(database);
      if (!segments.ok()) return segments.status();
      segments_ = *std::move(segments);
      for (const Segment& segment : segments_) {
        const auto steps = storage::CountSteps(database, segment, names_);
        if (!steps.ok()) return steps.status();
        total_steps_ += *steps;
      }
      return absl::OkStatus();
    });
  }

  absl::StatusOr<std::optional<v1::ReadPointsResponse>> Next() override {
    while (next_ < segments_.size()) {
      Segment& segment = segments_[next_];
      storage::PointsPage page;
      const absl::Status status = store_.Read([&](storage::Database& database) {
        // Between two pages it may have been deleted.
        auto found = storage::CheckRunExists(database, request_.run());
        if (!found.ok()) return found;
        auto read = storage::ReadPage(database, request_.run(), segment, names_, kPointsOfPage);
        if (read.ok()) page = *std::move(read);
        return read.status();
      });
      if (!status.ok()) return status;
      if (page.last_step >= segment.last) {
        ++next_;
      } else {
        segment.first = page.last_step + 1;
      }
      if (page.points.columns_size() > 0) return Piece(std::move(page.points));
    }
    // A run without points: nothing but that there are none.
    if (first_) return Piece({});
    return std::nullopt;
  }

 private:
  absl::StatusOr<std::vector<Segment>> FindSegments(storage::Database& database) {
    const int64_t to_step =
        request_.to_step() > 0 ? request_.to_step() : std::numeric_limits<int64_t>::max();
    storage::CurveQuery query;
    query.range = {request_.from_step(), to_step};
    absl::StatusOr<std::vector<Segment>> segments =
        storage::SegmentsOf(database, request_.run(), query);
    if (!segments.ok()) return segments;
    const auto attempts = storage::ReadAttempts(database, request_.run());
    if (!attempts.ok()) return attempts.status();
    if (request_.all_attempts()) {
      segments->clear();
      for (const storage::AttemptRow& attempt : *attempts) {
        segments->push_back({attempt.id, attempt.number, request_.from_step(), to_step});
      }
    }
    for (Segment& segment : *segments) {
      for (const storage::AttemptRow& attempt : *attempts) {
        if (attempt.id == segment.attempt) segment.last = std::min(segment.last, attempt.last_step);
      }
    }
    std::erase_if(*segments, [](const Segment& segment) { return segment.first > segment.last; });
    return segments;
  }

  v1::ReadPointsResponse Piece(v1::Points points) {
    v1::ReadPointsResponse piece;
    points.set_run(request_.run());
    *piece.mutable_points() = std::move(points);
    if (std::exchange(first_, false)) piece.set_total_steps(total_steps_);
    return piece;
  }

  storage::Store& store_;
  const v1::ReadPointsRequest request_;
  const std::vector<std::string> names_;
  std::vector<Segment> segments_;  // of these the first `next_` were read,
  size_t next_ = 0;                // and the one after them begins at what is left of it
  int64_t total_steps_ = 0;
  bool first_ = true;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PointsReader>> ServerApi::ReadPoints(
    const Principal&, const v1::ReadPointsRequest& request) {
  if (absl::Status status = CheckId("run", request.run()); !status.ok()) return status;
  std::vector<domain::FieldViolation> wrong;
  if (request.from_step() < 0) wrong.push_back({"from_step", "is negative"});
  if (request.to_step() < 0) wrong.push_back({"to_step", "is negative; use 0 for the last"});
  if (!wrong.empty()) return domain::InvalidFields(wrong);
  auto reader = std::make_unique<StoredPoints>(parts_.store, request);
  if (absl::Status status = reader->Plan(); !status.ok()) return status;
  return reader;
}

}  // namespace normlab::app
