// A whole model: embedding and positions, blocks in the run's placement, an optional final norm, an
// output head, and the loss.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_MODEL_H_
#define NORMLAB_SERVER_TRAINER_MODEL_MODEL_H_

#include <cstdint>
#include <vector>

#include "server/trainer/model/block.h"
#include "server/trainer/model/program.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

// The handles a test or a diagnostic needs to look inside. Movable until it is recorded.
struct Model {
  Value embedded;                 // [rows, d]
  std::vector<BlockTaps> blocks;  // in the order of the computation
  Value logits;                   // [rows, vocab]
};

// Records the model with its loss.
Model RecordModel(const TrainingSettings& settings, Program& program);

// Throws std::runtime_error naming the setting if this engine cannot build the model.
void CheckModelSettings(const TrainingSettings& settings);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_MODEL_H_
