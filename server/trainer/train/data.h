// Where the tokens come from.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_DATA_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_DATA_H_

#include <cstdint>
#include <memory>
#include <span>

#include "server/trainer/trainer.h"

namespace normlab::trainer {

class DataSource {
 public:
  virtual ~DataSource() = default;
  // Fills the next batch, [batch, time] each, row by row: targets are the tokens one ahead.
  virtual void Next(std::span<int32_t> tokens, std::span<int32_t> targets) = 0;
};

// The source `settings.data` names. Throws std::runtime_error if there is none.
std::unique_ptr<DataSource> MakeDataSource(const TrainingSettings& settings);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_DATA_H_
