// What the trainer that this server starts can do: it is asked, since it may be another build.
#ifndef NORMLAB_SERVER_EXECUTOR_TRAINER_CAPABILITIES_H_
#define NORMLAB_SERVER_EXECUTOR_TRAINER_CAPABILITIES_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/status/statusor.h"

namespace normlab::executor {

struct TrainerCapabilities {
  int64_t gpus = 0;  // on so many at most it trains a run
};

// Runs `trainer --capabilities`, which a trainer answers in the time that LibTorch takes to load;
// it is killed after `timeout`. The error says what it did instead. Any thread; waits.
absl::StatusOr<TrainerCapabilities> AskTrainer(const std::filesystem::path& trainer,
                                               std::chrono::milliseconds timeout);

}  // namespace normlab::executor

#endif  // NORMLAB_SERVER_EXECUTOR_TRAINER_CAPABILITIES_H_
