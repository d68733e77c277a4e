#include "server/storage/queue.h"

#include "normlab/v1/run.pb.h"

namespace normlab::storage {

absl::StatusOr<std::vector<QueuedRow>> ReadQueue(Database& database, int64_t limit) {
  // proto3 JSON has 64-bit numbers as texts.
  Statement select = database.Prepared(
      "SELECT id, display_name, device, "
      "CAST(json_extract(effective_spec, '$.threads') AS INTEGER) "
      "FROM runs JOIN run_specs ON run_specs.run = runs.id "
      "WHERE state = ?1 AND held = 0 "
      "ORDER BY priority DESC, queue_rank, id LIMIT ?2");
  select.Bind(1, int64_t{v1::Run::STATE_QUEUED});
  select.Bind(2, limit);
  std::vector<QueuedRow> queue;
  while (select.Step()) {
    queue.push_back(
        {select.Text(0), select.Text(1), select.Text(2), select.MaybeInteger(3).value_or(1)});
  }
  if (!select.status().ok()) return select.status();
  return queue;
}

}  // namespace normlab::storage
