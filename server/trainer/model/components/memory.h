// Transformer-XL's memory (Dai et al. 2019): what a layer was given in earlier segments.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_COMPONENTS_MEMORY_H_
#define NORMLAB_SERVER_TRAINER_MODEL_COMPONENTS_MEMORY_H_

#include <cstdint>

#include "server/trainer/model/program.h"

namespace normlab::trainer {

// How many of the memory's positions hold something, the same in every layer: a value [1, 1] that
// starts at 0 and grows by a segment with each Forward while Program::training(), up to `length`.
// Outside training it is 0: a batch of validation is a text of its own.
Value MemoryFilled(int64_t length, Program& program);

// [batch, length + time, width]: for each sequence the last `length` positions of what x was in
// earlier segments, the latest last, then x. No gradient goes into the memory. It advances with
// each Forward while Program::training().
Value WithMemory(int64_t length, Value x);

// The last time() rows of each sequence: x from WithMemory's output.
Value LatestRows(Value x);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_COMPONENTS_MEMORY_H_
