#include "server/storage/history.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "server/storage/journal.h"
#include "server/storage/levels.h"

namespace normlab::storage {
namespace {

struct SeriesRow {
  int64_t id;
  std::string name;
};

absl::StatusOr<std::vector<SeriesRow>> ReadSeriesOf(Database& database, int64_t attempt,
                                                    const std::vector<std::string>& names) {
  Statement select =
      database.Prepared("SELECT id, name FROM series WHERE attempt = ?1 ORDER BY position");
  select.Bind(1, attempt);
  std::vector<std::string> wanted = names;
  std::sort(wanted.begin(), wanted.end());
  std::vector<SeriesRow> series;
  while (select.Step()) {
    SeriesRow row = {select.Integer(0), select.Text(1)};
    if (names.empty() || std::binary_search(wanted.begin(), wanted.end(), row.name)) {
      series.push_back(std::move(row));
    }
  }
  if (!select.status().ok()) return select.status();
  return series;
}

// The first points of a series between two steps, `limit` at most.
absl::StatusOr<v1::Column> ReadColumn(Database& database, const SeriesRow& series, int64_t first,
                                      int64_t last, int64_t limit) {
  Statement select = database.Prepared(
      "SELECT step, value FROM points WHERE series = ?1 AND step BETWEEN ?2 AND ?3 "
      "ORDER BY step LIMIT ?4");
  select.Bind(1, series.id);
  select.Bind(2, first);
  select.Bind(3, last);
  select.Bind(4, limit);
  v1::Column column;
  column.set_name(series.name);
  while (select.Step()) {
    column.add_steps(select.Integer(0));
    column.add_values(select.IsNull(1) ? std::numeric_limits<double>::quiet_NaN() : select.Real(1));
  }
  if (!select.status().ok()) return select.status();
  return column;
}

void DropBehind(v1::Column& column, int64_t last) {
  const auto end = std::upper_bound(column.steps().begin(), column.steps().end(), last);
  const int kept = static_cast<int>(end - column.steps().begin());
  column.mutable_steps()->Truncate(kept);
  column.mutable_values()->Truncate(kept);
}

}  // namespace

absl::StatusOr<HistoryPosition> PositionAt(Database& database, std::string_view run,
                                           uint64_t sequence) {
  absl::StatusOr<std::vector<AttemptRow>> attempts = ReadAttempts(database, run);
  if (!attempts.ok()) return attempts.status();
  HistoryPosition position;
  for (const AttemptRow& attempt : *attempts) {
    if (attempt.started_sequence > sequence) break;
    const absl::StatusOr<int64_t> step = StepAt(database, attempt.id, sequence);
    if (!step.ok()) return step.status();
    position = {attempt.number, *step};
  }
  return position;
}

absl::StatusOr<HistoryPage> ReadHistory(Database& database, std::string_view run,
                                        HistoryPosition position, int64_t from_step,
                                        int64_t limit) {
  absl::StatusOr<std::vector<AttemptRow>> attempts = ReadAttempts(database, run);
  if (!attempts.ok()) return attempts.status();
  HistoryPage page;
  page.position = position;
  for (const AttemptRow& attempt : *attempts) {
    if (attempt.number < page.position.attempt) continue;
    if (attempt.number > page.position.attempt) page.position = {attempt.number, 0};
    const int64_t first =
        std::max({page.position.step + 1, from_step, attempt.resumed_from_step + 1});
    if (first > attempt.last_step) continue;
    absl::StatusOr<PointsPage> read =
        ReadPage(database, run, {attempt.id, attempt.number, first, attempt.last_step}, {}, limit);
    if (!read.ok()) return read.status();
    page.position.step = read->last_step;
    if (read->points.columns_size() == 0) continue;
    page.points.push_back(std::move(read->points));
    if (read->last_step < attempt.last_step || &attempt != &attempts->back()) return page;
  }
  page.complete = true;
  return page;
}

absl::StatusOr<PointsPage> ReadPage(Database& database, std::string_view run,
                                    const Segment& segment, const std::vector<std::string>& names,
                                    int64_t limit) {
  PointsPage page;
  page.points.set_run(std::string(run));
  page.points.set_attempt(segment.number);
  page.last_step = segment.last;
  const auto series = ReadSeriesOf(database, segment.attempt, names);
  if (!series.ok()) return series.status();
  // The page ends where the first series has had its share, wherever their steps are: a series may
  // have every step, every hundredth, or only a few far apart.
  const int64_t share = std::max<int64_t>(1, limit / std::max<int64_t>(1, series->size()));
  for (const SeriesRow& row : *series) {
    absl::StatusOr<v1::Column> column =
        ReadColumn(database, row, segment.first, page.last_step, share);
    if (!column.ok()) return column.status();
    if (column->steps_size() == 0) continue;
    if (column->steps_size() == share) page.last_step = *column->steps().rbegin();
    *page.points.add_columns() = *std::move(column);
  }
  for (v1::Column& column : *page.points.mutable_columns()) DropBehind(column, page.last_step);
  auto& columns = *page.points.mutable_columns();
  columns.erase(std::remove_if(columns.begin(), columns.end(),
                               [](const v1::Column& column) { return column.steps_size() == 0; }),
                columns.end());
  return page;
}

absl::StatusOr<int64_t> CountSteps(Database& database, const Segment& segment,
                                   const std::vector<std::string>& names) {
  const auto series = ReadSeriesOf(database, segment.attempt, names);
  if (!series.ok()) return series.status();
  int64_t most = 0;
  for (const SeriesRow& row : *series) {
    const absl::StatusOr<Slice> slice = SliceOf(database, row.id, segment.first, segment.last);
    if (!slice.ok()) return slice.status();
    most = std::max(most, slice->end - slice->begin);
  }
  return most;
}

}  // namespace normlab::storage
