// What follows an interrupted attempt: where the next one begins, how soon, and when to give up.
// Functions of a run's attempts, oldest first, and of the files that are there.
#ifndef NORMLAB_SERVER_APP_NEXT_ATTEMPT_H_
#define NORMLAB_SERVER_APP_NEXT_ATTEMPT_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "server/domain/run_state.h"
#include "server/storage/lineage.h"

namespace normlab::app {

struct StartingPoint {
  std::optional<storage::Checkpoint> checkpoint;  // absent: the beginning
  std::string text;  // "goes on from the checkpoint of step 90", and why not from a later one
};

// The latest checkpoint of the run's lineage whose file is in `folder` and that leaves something of
// its `steps` to do.
StartingPoint FindStartingPoint(const std::vector<storage::AttemptRow>& attempts, int64_t steps,
                                const std::filesystem::path& folder);

// So many of the latest attempts were interrupted one after another without bringing the run
// further: they wrote no checkpoint and, for a run without one, did no step that had not been done
// before.
int FruitlessInterruptions(const std::vector<storage::AttemptRow>& attempts);

// After so many of these in a row, a run fails.
inline constexpr int kFruitlessLimit = 3;

// How long a run waits after an interruption before it is tried again.
std::chrono::seconds PauseAfterInterruption(int fruitless);

// What a run becomes. `attempts` end with the interrupted one; `cause` says how it ended.
struct AfterInterruption {
  v1::Run::State state;       // QUEUED, PAUSED or FAILED
  std::string reason = {};    // why it waits, or has failed
  bool start_afresh = false;  // the next attempt uses no checkpoint
  std::chrono::seconds pause{0};
};
AfterInterruption DecideAfterInterruption(const v1::Run& run, const std::string& cause,
                                          std::vector<storage::AttemptRow> attempts,
                                          const std::filesystem::path& folder);

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_NEXT_ATTEMPT_H_
