#include "server/storage/early_stops.h"

#include <limits>
#include <utility>

#include "normlab/v1/run.pb.h"

namespace normlab::storage {

absl::Status InsertEarlyStop(WriteContext& context, const EarlyStopRow& row) {
  Statement insert = context.database.Prepared(
      "INSERT INTO early_stops (run, step, peers, reason, pending) VALUES (?1, ?2, ?3, ?4, ?5)");
  insert.Bind(1, row.run);
  insert.Bind(2, row.step);
  insert.Bind(3, row.peers);
  insert.Bind(4, row.reason);
  insert.Bind(5, int64_t{row.pending});
  return insert.Run();
}

absl::Status SetEarlyStopDone(WriteContext& context, std::string_view run) {
  Statement update = context.database.Prepared("UPDATE early_stops SET pending = 0 WHERE run = ?1");
  update.Bind(1, run);
  return update.Run();
}

absl::StatusOr<std::vector<EarlyStopRow>> ReadEarlyStops(Database& database, std::string_view run) {
  Statement select = database.Prepared(
      "SELECT step, peers, reason, pending FROM early_stops WHERE run = ?1 ORDER BY step");
  select.Bind(1, run);
  std::vector<EarlyStopRow> rows;
  while (select.Step()) {
    rows.push_back({.run = std::string(run),
                    .step = select.Integer(0),
                    .peers = select.Integer(1),
                    .reason = select.Text(2),
                    .pending = select.Integer(3) != 0});
  }
  if (!select.status().ok()) return select.status();
  return rows;
}

absl::StatusOr<bool> HasLossAt(Database& database, std::string_view run, int64_t step) {
  Statement select = database.Prepared(
      "SELECT 1 FROM attempts "
      "JOIN series ON series.attempt = attempts.id AND series.name = 'loss' "
      "JOIN points ON points.series = series.id AND points.step = ?2 "
      "WHERE attempts.run = ?1");
  select.Bind(1, run);
  select.Bind(2, step);
  const bool found = select.Step();
  if (!select.status().ok()) return select.status();
  return found;
}

absl::StatusOr<std::map<std::string, double>> ReadLossesAt(Database& database,
                                                           std::string_view experiment,
                                                           int64_t step) {
  std::map<std::string, double> losses;
  {
    // Later attempts come later and replace what is there.
    Statement select = database.Prepared(
        "SELECT runs.id, points.value FROM runs "
        "JOIN attempts ON attempts.run = runs.id "
        "JOIN series ON series.attempt = attempts.id AND series.name = 'loss' "
        "JOIN points ON points.series = series.id AND points.step = ?2 "
        "WHERE runs.experiment = ?1 ORDER BY runs.id, attempts.number");
    select.Bind(1, experiment);
    select.Bind(2, step);
    while (select.Step()) {
      losses[select.Text(0)] =
          select.IsNull(1) ? std::numeric_limits<double>::quiet_NaN() : select.Real(1);
    }
    if (!select.status().ok()) return select.status();
  }
  Statement select = database.Prepared("SELECT id FROM runs WHERE experiment = ?1 AND +state = ?2");
  select.Bind(1, experiment);
  select.Bind(2, int64_t{v1::Run::STATE_DIVERGED});
  while (select.Step()) losses[select.Text(0)] = std::numeric_limits<double>::infinity();
  if (!select.status().ok()) return select.status();
  return losses;
}

}  // namespace normlab::storage
