#include "server/storage/run_description.h"

#include <cstdint>
#include <utility>

#include "server/storage/runs.h"

namespace normlab::storage {
namespace {

std::optional<int64_t> Number(const std::optional<bool>& flag) {
  return flag ? std::optional<int64_t>(*flag) : std::nullopt;
}

absl::Status WriteLabels(Database& database, const std::string& run,
                         const std::vector<std::string>& labels) {
  {
    Statement erase = database.Prepared("DELETE FROM run_labels WHERE run = ?1");
    erase.Bind(1, run);
    if (absl::Status status = erase.Run(); !status.ok()) return status;
  }
  Statement insert = database.Prepared("INSERT INTO run_labels (run, label) VALUES (?1, ?2)");
  for (const std::string& label : labels) {
    insert.Reset();
    insert.Bind(1, run);
    insert.Bind(2, label);
    if (absl::Status status = insert.Run(); !status.ok()) return status;
  }
  return insert.status();
}

}  // namespace

absl::Status DescribeRun(WriteContext& context, const std::string& run,
                         const RunDescription& description) {
  // First of all, so that a run that is not there gets no labels.
  if (auto found = ReadRun(context.database, run).status(); !found.ok()) return found;
  {
    Statement update = context.database.Prepared(
        "UPDATE runs SET display_name = coalesce(?2, display_name), notes = coalesce(?3, notes), "
        "pinned = coalesce(?4, pinned), archived = coalesce(?5, archived), changed_sequence = ?6 "
        "WHERE id = ?1");
    update.Bind(1, run);
    update.Bind(2, description.display_name);
    update.Bind(3, description.notes);
    update.Bind(4, Number(description.pinned));
    update.Bind(5, Number(description.archived));
    update.Bind(6, static_cast<int64_t>(context.sequence));
    if (absl::Status status = update.Run(); !status.ok()) return status;
  }
  if (description.labels) {
    absl::Status status = WriteLabels(context.database, run, *description.labels);
    if (!status.ok()) return status;
  }
  absl::StatusOr<v1::Run> changed = ReadRun(context.database, run);
  if (!changed.ok()) return changed.status();
  v1::WatchRunsResponse snapshot;
  *snapshot.mutable_run() = *std::move(changed);
  context.Publish(run, std::move(snapshot));
  return absl::OkStatus();
}

}  // namespace normlab::storage
