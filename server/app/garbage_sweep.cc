#include "server/app/garbage_sweep.h"

#include <memory>

#include "server/base/log.h"
#include "server/storage/run_deletion.h"

namespace normlab::app {
namespace {

// Points a piece: a few milliseconds of the writer's time.
constexpr int64_t kPiece = 2000;

}  // namespace

void GarbageSweep::Start() {
  if (!under_way_.exchange(true)) SubmitPiece();
}

void GarbageSweep::SubmitPiece() {
  const auto more = std::make_shared<bool>(false);
  store_.writer().Submit(
      [more](storage::WriteContext& context) -> absl::Status {
        const absl::StatusOr<bool> swept = storage::SweepGarbage(context.database, kPiece);
        if (!swept.ok()) return swept.status();
        *more = *swept;
        return absl::OkStatus();
      },
      [this, more](const absl::Status& status) {
        if (status.ok() && *more) {
          SubmitPiece();
          return;
        }
        // Whoever deletes a run after this piece calls Start after this: the writer tells of its
        // work in the order in which it was done.
        under_way_ = false;
        // Nothing is lost: the next deletion, or the next start, goes on.
        if (!status.ok() && !absl::IsCancelled(status)) {
          LogWarning("deleted points are still there", {{"why", std::string(status.message())}});
        }
      });
}

void RemoveFilesOfDeletedRuns(storage::Store& store, const RunFiles& files) {
  for (const auto& [run, attempts] : files.RunsWithFiles()) {
    bool deleted = false;
    const absl::Status status = store.Read([&](storage::Database& database) {
      const absl::StatusOr<bool> was = storage::WasDeleted(database, run);
      deleted = was.value_or(false);
      return was.status();
    });
    if (!status.ok() || !deleted) continue;
    if (const absl::Status removed = files.Remove(run, attempts); !removed.ok()) {
      LogWarning("files of a deleted run are still there",
                 {{"run", run}, {"why", std::string(removed.message())}});
    }
  }
}

}  // namespace normlab::app
