#include "server/storage/queue.h"

#include "normlab/v1/run.pb.h"

namespace normlab::storage {

absl::StatusOr<std::vector<QueuedRow>> ReadQueue(Database& database, int64_t limit) {
  // The state stands as a number in the text, as the index has it. proto3 JSON has 64-bit numbers
  // as texts.
  Statement select = database.Prepared(
      "SELECT id, display_name, device, "
      "CAST(json_extract(effective_spec, '$.threads') AS INTEGER) "
      "FROM (SELECT id FROM runs INDEXED BY runs_in_queue WHERE state = 1 AND held = 0 "
      "      ORDER BY priority DESC, queue_rank, id LIMIT ?1) "
      "JOIN runs USING (id) JOIN run_specs ON run_specs.run = id "
      "ORDER BY priority DESC, queue_rank, id");
  static_assert(v1::Run::STATE_QUEUED == 1);
  select.Bind(1, limit);
  std::vector<QueuedRow> queue;
  while (select.Step()) {
    queue.push_back(
        {select.Text(0), select.Text(1), select.Text(2), select.MaybeInteger(3).value_or(1)});
  }
  if (!select.status().ok()) return select.status();
  return queue;
}

}  // namespace normlab::storage
