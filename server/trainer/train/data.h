// Where the tokens come from.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_DATA_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_DATA_H_

#include <cstdint>
#include <memory>

#include "server/trainer/model/batch.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

class DataSource {
 public:
  virtual ~DataSource() = default;
  // Fills in the next batch.
  virtual void Next(Batch& batch) = 0;
};

// The source `settings.data` names. Throws std::runtime_error if there is none.
std::unique_ptr<DataSource> MakeDataSource(const TrainingSettings& settings);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_DATA_H_
