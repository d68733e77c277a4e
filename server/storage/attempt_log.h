// Stores what trainers report: points, summary, outcome. Belongs to the writer's thread.
#ifndef NORMLAB_SERVER_STORAGE_ATTEMPT_LOG_H_
#define NORMLAB_SERVER_STORAGE_ATTEMPT_LOG_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "normlab/worker/v1/worker.pb.h"
#include "server/base/clock.h"
#include "server/storage/journal.h"
#include "server/storage/levels.h"
#include "server/storage/runs.h"
#include "server/storage/writer.h"

namespace normlab::storage {

class AttemptLog {
 public:
  explicit AttemptLog(const Clock& clock) : clock_(clock) {}

  // Stores serialized worker.v1.Record messages with sequences first_sequence, first_sequence + 1,
  // ... and publishes their points. Records already stored are passed over, in this transaction.
  // OUT_OF_RANGE when records are missing before the first; INVALID_ARGUMENT for one that cannot be
  // read or that contradicts what is stored.
  absl::Status Append(WriteContext& context, int64_t attempt, uint64_t first_sequence,
                      const std::vector<std::string>& records);

  // Forgets what is kept about attempts; it is read again when needed. After a rollback, and for
  // one attempt when it has ended.
  void Forget() { open_.clear(); }
  void Forget(int64_t attempt) { open_.erase(attempt); }

  // Points stored since the start. Any thread.
  uint64_t points_stored() const { return points_stored_.load(std::memory_order_relaxed); }

 private:
  absl::Status AppendTo(WriteContext& context, int64_t attempt, uint64_t first_sequence,
                        const std::vector<std::string>& records);

  struct OpenSeries {
    int64_t id = 0;
    std::string name;
    std::optional<OpenLevels> levels;  // read from the database when the first point comes
  };
  // An attempt that is being written: what the database says about it, and the last rates.
  struct Open {
    AttemptRow row;
    int64_t total_steps = 0;
    v1::Summary summary;
    std::vector<OpenSeries> series;  // by the trainer's index
    Journal journal;
    std::deque<std::pair<std::chrono::steady_clock::time_point, int64_t>> recent;  // (time, step)
    std::chrono::steady_clock::time_point last_progress{};
  };
  // What one Append has gathered.
  struct Batch {
    std::map<uint32_t, v1::Column> columns;
    uint64_t rows = 0;
    bool has_steps = false;
    bool snapshot_changed = false;  // the model became known, a checkpoint was written
  };

  absl::StatusOr<Open*> Find(WriteContext& context, int64_t attempt);
  absl::Status StoreRecord(WriteContext& context, Open& open, const worker::v1::Record& record,
                           Batch& batch);
  absl::Status NoteCheckpoint(const worker::v1::CheckpointWritten& checkpoint, AttemptRow& row,
                              Batch& batch);
  absl::Status DeclareSeries(WriteContext& context, Open& open,
                             const worker::v1::SeriesDeclared& declared);
  absl::Status TakeStep(Open& open, const worker::v1::Step& step, Batch& batch);
  absl::Status StorePoints(WriteContext& context, Open& open, const Batch& batch);
  absl::Status StorePoint(WriteContext& context, OpenSeries& series, domain::Point point);
  absl::Status WriteTotals(WriteContext& context, Open& open, const Batch& batch);
  absl::Status PublishBatch(WriteContext& context, Open& open, Batch& batch);
  void PublishProgress(WriteContext& context, Open& open);
  v1::Progress MeasureProgress(Open& open);

  const Clock& clock_;
  std::unordered_map<int64_t, Open> open_;
  std::atomic<uint64_t> points_stored_{0};
};

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_ATTEMPT_LOG_H_
