#include "server/storage/run_control.h"

#include <array>
#include <utility>

#include "normlab/v1/run.pb.h"
#include "server/base/strings.h"

namespace normlab::storage {
namespace {

// As they are stored, in the order of the enum.
constexpr std::array<std::string_view, 6> kCauses = {"",       "time",  "preempted",
                                                     "server", "early", "memory"};

}  // namespace

absl::StatusOr<StopCause> StopCauseOf(std::string_view text) {
  for (size_t i = 0; i < kCauses.size(); ++i) {
    if (kCauses[i] == text) return static_cast<StopCause>(i);
  }
  return absl::DataLossError(StrCat("\"", text, "\" is no cause to stop a run"));
}

absl::StatusOr<RunControl> ReadRunControl(Database& database, std::string_view run) {
  Statement select = database.Prepared(
      "SELECT stop_cause, stop_detail, not_before, tries, limits_from FROM runs WHERE id = ?1");
  select.Bind(1, run);
  if (!select.Step()) {
    return select.status().ok() ? absl::NotFoundError(StrCat("there is no run ", run))
                                : select.status();
  }
  const absl::StatusOr<StopCause> cause = StopCauseOf(select.Text(0));
  if (!cause.ok()) return cause.status();
  return RunControl{.stop_cause = *cause,
                    .stop_detail = select.Text(1),
                    .not_before = select.MaybeInteger(2),
                    .tries = select.Integer(3),
                    .limits_from = select.Integer(4)};
}

absl::Status WriteRunControl(WriteContext& context, std::string_view run,
                             const RunControl& control) {
  Statement update = context.database.Prepared(
      "UPDATE runs SET stop_cause = ?2, stop_detail = ?3, not_before = ?4, tries = ?5, "
      "limits_from = ?6 WHERE id = ?1");
  update.Bind(1, run);
  update.Bind(2, kCauses.at(static_cast<size_t>(control.stop_cause)));
  update.Bind(3, control.stop_detail);
  update.Bind(4, control.not_before);
  update.Bind(5, control.tries);
  update.Bind(6, control.limits_from);
  return update.Run();
}

absl::StatusOr<std::map<std::string, int64_t>> ReadHeldBack(Database& database) {
  Statement select = database.Prepared(
      "SELECT id, not_before FROM runs WHERE not_before IS NOT NULL AND state = ?1");
  select.Bind(1, int64_t{v1::Run::STATE_QUEUED});
  std::map<std::string, int64_t> runs;
  while (select.Step()) runs[select.Text(0)] = select.Integer(1);
  if (!select.status().ok()) return select.status();
  return runs;
}

}  // namespace normlab::storage
