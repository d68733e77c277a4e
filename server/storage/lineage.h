// Which attempts a run's present state comes from. An attempt that went on from a checkpoint
// continues the one that had written it; what that one did beyond the checkpoint is abandoned. One
// that started afresh continues nothing.
//
//   for (const LineagePart& part : LineageOf(attempts)) ...  // steps of part.attempt
//
// Attempts are those of one run, oldest first as ReadAttempts gives them.
#ifndef NORMLAB_SERVER_STORAGE_LINEAGE_H_
#define NORMLAB_SERVER_STORAGE_LINEAGE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/storage/attempts.h"
#include "server/storage/sqlite.h"

namespace normlab::storage {

// Steps of one attempt that belong to the default curve.
struct LineagePart {
  const AttemptRow* attempt;  // in the vector that LineageOf was given
  int64_t first_step, last_step;
};

// The latest attempt and those it comes from, oldest first.
std::vector<LineagePart> LineageOf(const std::vector<AttemptRow>& attempts);

struct Checkpoint {
  std::string run;
  int32_t attempt = 0;  // number of the one that wrote it
  int64_t step = 0;
  std::string file;  // in the run's folder for checkpoints
};

// Checkpoints that the latest attempt's steps lead through, latest first. Their files may be gone.
std::vector<Checkpoint> CheckpointsOf(const std::vector<AttemptRow>& attempts);

// The first of them. NOT_FOUND when there is none.
absl::StatusOr<Checkpoint> ReadLatestCheckpoint(Database& database, std::string_view run);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_LINEAGE_H_
