#include "server/storage/lineage.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "server/base/strings.h"

namespace normlab::storage {
namespace {

const AttemptRow* Find(const std::vector<AttemptRow>& attempts, int32_t number) {
  for (const AttemptRow& attempt : attempts) {
    if (attempt.number == number) return &attempt;
  }
  return nullptr;
}

}  // namespace

std::vector<LineagePart> LineageOf(const std::vector<AttemptRow>& attempts) {
  std::vector<LineagePart> parts;
  int64_t last = std::numeric_limits<int64_t>::max();
  const AttemptRow* attempt = attempts.empty() ? nullptr : &attempts.back();
  while (attempt != nullptr) {
    parts.push_back({attempt, attempt->resumed_from_step + 1, last});
    last = std::min(last, attempt->resumed_from_step);
    // An origin is older, so this ends even if the rows are damaged.
    const int32_t origin = attempt->resumed_from_attempt;
    attempt = origin < attempt->number ? Find(attempts, origin) : nullptr;
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Checkpoint> CheckpointsOf(const std::vector<AttemptRow>& attempts) {
  std::vector<Checkpoint> checkpoints;
  const std::vector<LineagePart> parts = LineageOf(attempts);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const AttemptRow& attempt = *part->attempt;
    const auto add = [&](int64_t step, const std::string& file) {
      if (step < part->first_step || step > part->last_step) return;
      checkpoints.push_back({attempt.run, attempt.number, step, file});
    };
    add(attempt.checkpoint_step, attempt.checkpoint_file);
    add(attempt.earlier_checkpoint_step, attempt.earlier_checkpoint_file);
  }
  return checkpoints;
}

absl::StatusOr<Checkpoint> ReadLatestCheckpoint(Database& database, std::string_view run) {
  const absl::StatusOr<std::vector<AttemptRow>> attempts = ReadAttempts(database, run);
  if (!attempts.ok()) return attempts.status();
  std::vector<Checkpoint> checkpoints = CheckpointsOf(*attempts);
  if (!checkpoints.empty()) return std::move(checkpoints.front());
  return absl::NotFoundError(StrCat("run ", run, " has no checkpoint yet"));
}

}  // namespace normlab::storage
