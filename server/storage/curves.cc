#include "server/storage/curves.h"

#include <algorithm>
#include <map>
#include <utility>

#include "server/storage/lineage.h"

namespace normlab::storage {
namespace {

struct Segment {
  int64_t attempt;
  int64_t first, last;  // steps
};

// Which steps of which attempts make the default curve, oldest attempt first.
std::vector<Segment> Lineage(const std::vector<AttemptRow>& attempts, StepRange range) {
  std::vector<Segment> segments;
  for (const LineagePart& part : LineageOf(attempts)) {
    const int64_t first = std::max(range.first, part.first_step);
    const int64_t last = std::min(range.last, part.last_step);
    if (first <= last) segments.push_back({part.attempt->id, first, last});
  }
  return segments;
}

struct SeriesRow {
  int64_t id;
  std::string name;
};

absl::StatusOr<std::vector<SeriesRow>> ReadSeriesOf(Database& database, int64_t attempt) {
  Statement select =
      database.Prepared("SELECT id, name FROM series WHERE attempt = ?1 ORDER BY position");
  select.Bind(1, attempt);
  std::vector<SeriesRow> series;
  while (select.Step()) series.push_back({select.Integer(0), select.Text(1)});
  if (!select.status().ok()) return select.status();
  return series;
}

double ValueOf(const Statement& row, int column) {
  return row.IsNull(column) ? std::numeric_limits<double>::quiet_NaN() : row.Real(column);
}

absl::Status AddPoints(Database& database, int64_t series, int64_t first, int64_t last,
                       int64_t limit, std::vector<int64_t>& steps, std::vector<double>& values) {
  Statement select = database.Prepared(
      "SELECT step, value FROM points WHERE series = ?1 AND step BETWEEN ?2 AND ?3 "
      "ORDER BY step LIMIT ?4");
  select.Bind(1, series);
  select.Bind(2, first);
  select.Bind(3, last);
  select.Bind(4, limit);
  while (select.Step()) {
    steps.push_back(select.Integer(0));
    values.push_back(ValueOf(select, 1));
  }
  return select.status();
}

absl::StatusOr<v1::Points> ReadPoints(Database& database, const AttemptRow& attempt, int64_t first,
                                      int64_t last) {
  v1::Points points;
  points.set_run(attempt.run);
  points.set_attempt(attempt.number);
  absl::StatusOr<std::vector<SeriesRow>> series = ReadSeriesOf(database, attempt.id);
  if (!series.ok()) return series.status();
  for (const SeriesRow& row : *series) {
    domain::Curve curve;
    if (auto status = AddPoints(database, row.id, first, last, -1, curve.steps, curve.values);
        !status.ok()) {
      return status;
    }
    if (curve.steps.empty()) continue;
    v1::Column& column = *points.add_columns();
    column.set_name(row.name);
    column.mutable_steps()->Add(curve.steps.begin(), curve.steps.end());
    column.mutable_values()->Add(curve.values.begin(), curve.values.end());
  }
  return points;
}

absl::StatusOr<int64_t> CountSeries(Database& database, int64_t attempt) {
  Statement select = database.Prepared("SELECT count(*) FROM series WHERE attempt = ?1");
  select.Bind(1, attempt);
  if (!select.Step()) return select.status();
  return std::max<int64_t>(1, select.Integer(0));
}

}  // namespace

absl::StatusOr<std::vector<NamedCurve>> ReadDefaultCurves(Database& database, std::string_view run,
                                                          const std::vector<std::string>& names,
                                                          StepRange range) {
  absl::StatusOr<std::vector<AttemptRow>> attempts = ReadAttempts(database, run);
  if (!attempts.ok()) return attempts.status();
  std::vector<NamedCurve> curves;
  std::map<std::string, size_t> index;
  for (const std::string& name : names) {
    if (index.emplace(name, curves.size()).second) curves.push_back({name, {}});
  }
  for (const Segment& segment : Lineage(*attempts, range)) {
    absl::StatusOr<std::vector<SeriesRow>> series = ReadSeriesOf(database, segment.attempt);
    if (!series.ok()) return series.status();
    for (const SeriesRow& row : *series) {
      auto found = index.find(row.name);
      if (found == index.end()) {
        if (!names.empty()) continue;
        found = index.emplace(row.name, curves.size()).first;
        curves.push_back({row.name, {}});
      }
      domain::Curve& curve = curves[found->second].curve;
      if (auto status = AddPoints(database, row.id, segment.first, segment.last, -1, curve.steps,
                                  curve.values);
          !status.ok()) {
        return status;
      }
    }
  }
  return curves;
}

absl::StatusOr<std::vector<std::string>> ReadSeriesNames(Database& database,
                                                         std::string_view run) {
  absl::StatusOr<std::vector<AttemptRow>> attempts = ReadAttempts(database, run);
  if (!attempts.ok()) return attempts.status();
  std::vector<std::string> names;
  for (const Segment& segment : Lineage(*attempts, {})) {
    absl::StatusOr<std::vector<SeriesRow>> series = ReadSeriesOf(database, segment.attempt);
    if (!series.ok()) return series.status();
    for (SeriesRow& row : *series) {
      if (std::find(names.begin(), names.end(), row.name) == names.end()) {
        names.push_back(std::move(row.name));
      }
    }
  }
  return names;
}

absl::StatusOr<HistoryPosition> PositionAt(Database& database, std::string_view run,
                                           uint64_t sequence) {
  absl::StatusOr<std::vector<AttemptRow>> attempts = ReadAttempts(database, run);
  if (!attempts.ok()) return attempts.status();
  HistoryPosition position;
  for (const AttemptRow& attempt : *attempts) {
    if (attempt.started_sequence > sequence) break;
    position = {attempt.number, 0};
    Statement select = database.Prepared(
        "SELECT last_step FROM journal WHERE attempt = ?1 AND sequence <= ?2 "
        "ORDER BY sequence DESC LIMIT 1");
    select.Bind(1, attempt.id);
    select.Bind(2, static_cast<int64_t>(sequence));
    if (select.Step()) position.step = select.Integer(0);
    if (!select.status().ok()) return select.status();
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
    int64_t first =
        std::max({page.position.step + 1, from_step, attempt.resumed_from_step + 1});
    while (first <= attempt.last_step) {
      absl::StatusOr<int64_t> series = CountSeries(database, attempt.id);
      if (!series.ok()) return series.status();
      const int64_t steps = std::max<int64_t>(1, limit / *series);
      const int64_t last = std::min(attempt.last_step, first + steps - 1);
      absl::StatusOr<v1::Points> points = ReadPoints(database, attempt, first, last);
      if (!points.ok()) return points.status();
      page.position.step = last;
      first = last + 1;
      if (points->columns_size() == 0) continue;
      page.points.push_back(*std::move(points));
      if (last < attempt.last_step || &attempt != &attempts->back()) return page;
    }
  }
  page.complete = true;
  return page;
}

}  // namespace normlab::storage
