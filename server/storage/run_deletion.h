// Deleting runs. What makes a run goes in one short transaction; its points, which may be many
// millions, are then only named by `garbage` and go a few thousand at a time.
#ifndef NORMLAB_SERVER_STORAGE_RUN_DELETION_H_
#define NORMLAB_SERVER_STORAGE_RUN_DELETION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "normlab/v1/run.pb.h"
#include "server/storage/runs.h"
#include "server/storage/sqlite.h"
#include "server/storage/writer.h"

namespace normlab::storage {

// OK for a run that may be deleted: it has ended and is not pinned. FAILED_PRECONDITION says what
// to do first.
absl::Status MayDelete(const v1::Run& run);

// Deletes the run (MayDelete is asked again, in the transaction) and publishes that it is gone. On
// the writer's thread.
absl::Status DeleteRun(WriteContext& context, const std::string& run);

// Forgets which checkpoints the run's attempts have; the files are the caller's. MayDelete is asked
// again. On the writer's thread.
absl::Status ForgetCheckpoints(WriteContext& context, const std::string& run);

// Deletes about `rows` points and blocks of deleted runs. False when that was all there is. On the
// writer's thread.
absl::StatusOr<bool> SweepGarbage(Database& database, int64_t rows);

// Points stored for the run, all attempts.
absl::StatusOr<int64_t> CountPoints(Database& database, std::string_view run);

// Runs deleted behind `place` in the order of their deletion, at most `limit`.
absl::StatusOr<std::vector<ChangedRun>> RunsDeletedSince(Database& database,
                                                         const ChangedRun& place, int limit);

// Whether there was such a run and it was deleted.
absl::StatusOr<bool> WasDeleted(Database& database, std::string_view run);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_RUN_DELETION_H_
