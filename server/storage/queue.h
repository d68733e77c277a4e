// The runs that wait, as the dispatcher reads them every time something may have become startable:
// no more of them than it takes to decide.
#ifndef NORMLAB_SERVER_STORAGE_QUEUE_H_
#define NORMLAB_SERVER_STORAGE_QUEUE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/storage/sqlite.h"

namespace normlab::storage {

struct QueuedRow {
  std::string id;
  std::string display_name;
  std::string device;   // as asked for
  int64_t threads = 1;  // as resolved
};

// QUEUED runs that are not held, by class, rank and age, at most `limit`.
absl::StatusOr<std::vector<QueuedRow>> ReadQueue(Database& database, int64_t limit);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_QUEUE_H_
