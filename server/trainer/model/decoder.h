// The decoder-only Transformer: embedding and positions, blocks in the run's placement, an optional
// final norm, and an output head without bias.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_DECODER_H_
#define NORMLAB_SERVER_TRAINER_MODEL_DECODER_H_

#include <cstdint>

#include "server/trainer/model/program.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

// The handles a test or a diagnostic needs to look inside.
struct Decoder {
  Value embedded;  // [rows, d]
  Value logits;    // [rows, vocab]
};

// Records the model with its loss. Each row of the program counts 1 / total_rows in the loss.
Decoder RecordDecoder(const TrainingSettings& settings, int64_t total_rows, Program& program);

// Throws std::runtime_error naming the setting if this engine cannot build the model.
void CheckModelSettings(const TrainingSettings& settings);

// Floating-point operations of one step, forward and backward, multiply-adds counted as two. Counts
// matrix products and attention, the causal half only; element-wise work is left out as usual.
double DecoderFlopsPerStep(const TrainingSettings& settings);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_DECODER_H_
