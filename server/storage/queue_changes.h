// What people change about runs in the queue. Each function runs on the writer's thread, publishes
// the run as it then is, and refuses a run that is not QUEUED with FAILED_PRECONDITION.
#ifndef NORMLAB_SERVER_STORAGE_QUEUE_CHANGES_H_
#define NORMLAB_SERVER_STORAGE_QUEUE_CHANGES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/storage/dependencies.h"
#include "server/storage/writer.h"

namespace normlab::storage {

// Absent is left as it is.
struct QueueChange {
  std::optional<bool> held = {};
  std::string wait_reason = {};      // with `held`: what the run then says
  std::optional<int> priority = {};  // domain/priority.h
  std::optional<Dependencies> after = {};
  bool empty() const { return !held && !priority && !after; }
};

// INVALID_ARGUMENT when `after` cannot be (CheckDependencies).
absl::Status ChangeQueued(WriteContext& context, const std::string& run, const QueueChange& change);

// Where a run goes among the queued runs of its user and class.
struct Place {
  enum class Kind { kFirst, kLast, kBefore, kBehind };
  Kind kind = Kind::kFirst;
  std::string other = {};  // kBefore, kBehind: the id of another run of that user and class
};
// `moved`, unless null, is told where it stood and stands now.
struct Moved {
  int64_t from = 0;  // from 1
  int64_t to = 0;
  int64_t of = 0;  // so many
};
absl::Status MoveQueued(WriteContext& context, const std::string& run, const Place& place,
                        Moved* moved = nullptr);

// OK if `more` runs may join those that `user` has in the queue; else FAILED_PRECONDITION with the
// numbers.
absl::Status CheckQueueLimit(Database& database, const std::string& user, int64_t more);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_QUEUE_CHANGES_H_
