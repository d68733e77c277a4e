#include "server/storage/summary.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "server/storage/lineage.h"
#include "server/storage/runs.h"

namespace normlab::storage {
namespace {

// What the points of one series amount to.
struct Extremes {
  std::optional<double> last;  // by step; may be NaN
  std::optional<double> lowest_finite;
  std::optional<double> highest;  // infinity counts, NaN does not
  std::optional<int64_t> bad_step;

  bool LastIsNan() const { return last && std::isnan(*last); }
};

template <typename T, typename Better>
void Take(std::optional<T>& best, std::optional<T> other, Better better) {
  if (other && (!best || better(*other, *best))) best = other;
}

std::optional<double> MaybeReal(const Statement& row, int column) {
  return row.IsNull(column) ? std::nullopt : std::optional<double>(row.Real(column));
}

// Adds the points of one attempt's series `name`; attempts come oldest first.
absl::Status AddPart(Database& database, const LineagePart& part, const char* name,
                     Extremes& extremes) {
  // 9e999 is how SQL writes infinity; a NaN is NULL.
  Statement select = database.Prepared(
      "SELECT min(iif(abs(value) < 9e999, value, NULL)), max(value), "
      "min(iif(value IS NULL OR abs(value) = 9e999, step, NULL)), max(step), series "
      "FROM points WHERE series = (SELECT id FROM series WHERE attempt = ?1 AND name = ?2) "
      "AND step BETWEEN ?3 AND ?4");
  select.Bind(1, part.attempt->id);
  select.Bind(2, name);
  select.Bind(3, part.first_step);
  select.Bind(4, part.last_step);
  if (!select.Step() || select.IsNull(3)) return select.status();
  Take(extremes.lowest_finite, MaybeReal(select, 0), std::less<double>());
  Take(extremes.highest, MaybeReal(select, 1), std::greater<double>());
  Take(extremes.bad_step, select.MaybeInteger(2), std::less<int64_t>());
  Statement last = database.Prepared("SELECT value FROM points WHERE series = ?1 AND step = ?2");
  last.Bind(1, select.Integer(4));
  last.Bind(2, select.Integer(3));
  if (!last.Step()) return last.status();
  extremes.last = last.IsNull(0) ? std::numeric_limits<double>::quiet_NaN() : last.Real(0);
  return absl::OkStatus();
}

absl::StatusOr<Extremes> ExtremesOf(Database& database, const std::vector<LineagePart>& parts,
                                    const char* name) {
  Extremes extremes;
  for (const LineagePart& part : parts) {
    if (auto status = AddPart(database, part, name, extremes); !status.ok()) return status;
  }
  return extremes;
}

void BindNumber(Statement& statement, int parameter, const std::optional<double>& value) {
  if (value && !std::isnan(*value)) {
    statement.Bind(parameter, *value);
  } else {
    statement.BindNull(parameter);
  }
}

absl::StatusOr<int64_t> StepOf(Database& database, const std::string& run) {
  Statement select = database.Prepared("SELECT step FROM runs WHERE id = ?1");
  select.Bind(1, run);
  if (select.Step()) return select.Integer(0);
  return select.status().ok() ? absl::NotFoundError("there is no run " + run) : select.status();
}

}  // namespace

absl::Status RewindRun(WriteContext& context, const std::vector<AttemptRow>& attempts) {
  const AttemptRow& latest = attempts.back();
  const absl::StatusOr<int64_t> step = StepOf(context.database, latest.run);
  if (!step.ok()) return step.status();
  if (*step == latest.resumed_from_step) return absl::OkStatus();
  const std::vector<LineagePart> parts = LineageOf(attempts);
  const absl::StatusOr<Extremes> loss = ExtremesOf(context.database, parts, "loss");
  const absl::StatusOr<Extremes> norm = ExtremesOf(context.database, parts, "gradient_norm");
  const absl::StatusOr<Extremes> validation =
      ExtremesOf(context.database, parts, "validation_loss");
  for (const auto* read : {&loss, &norm, &validation}) {
    if (!read->ok()) return read->status();
  }
  std::optional<int64_t> bad_step = loss->bad_step;
  Take(bad_step, norm->bad_step, std::less<int64_t>());
  Statement update = context.database.Prepared(
      "UPDATE runs SET step = ?2, final_loss = ?3, min_loss = ?4, final_gradient_norm = ?5, "
      "max_gradient_norm = ?6, first_bad_step = ?7, validation_loss = ?8, nan_numbers = ?9 "
      "WHERE id = ?1");
  update.Bind(1, latest.run);
  update.Bind(2, latest.resumed_from_step);
  BindNumber(update, 3, loss->last);
  BindNumber(update, 4, loss->lowest_finite);
  BindNumber(update, 5, norm->last);
  BindNumber(update, 6, norm->highest);
  update.Bind(7, bad_step);
  BindNumber(update, 8, validation->last);
  update.Bind(9, (loss->LastIsNan() ? kNanFinalLoss : 0) +
                     (norm->LastIsNan() ? kNanFinalGradientNorm : 0) +
                     (validation->LastIsNan() ? kNanValidationLoss : 0));
  return update.Run();
}

}  // namespace normlab::storage
