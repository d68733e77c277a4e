// Where the batches come from: the tasks a model learns.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_DATA_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_DATA_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "server/trainer/model/batch.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

// An endless sequence of batches [batch_size, sequence_length], decided by the settings alone.
// Targets are the tokens that come next, or kIgnored where the task does not ask. V = vocab_size.
//
//   arithmetic        start, start + 1, ... modulo V; the article's task
//   copy, reverse     a random part, the separator V - 1, and the part again (or backwards); only
//                     the second one counts. Of an encoder-decoder: see data_repeat.cc
//   modular-addition  problems `a b = c` one after the other, c = a + b modulo p = V - 1, where "="
//                     is token p; only c counts
//   gaussian          Batch::inputs of N(0, 1), uniformly random targets
//   text              pieces of settings.text_file; see data_text.cc
//
// Random numbers are those of NumPy's default_rng(seed + 116 + (k << 56)) with k = 0 for
// arithmetic, 1 copy, 2 reverse, 3 modular-addition, 4 gaussian and 5 text.
class DataSource {
 public:
  virtual ~DataSource() = default;

  // Fills in the next batch.
  virtual void Next(Batch& batch) = 0;

  // What decides the batches to come, for a checkpoint. Restore throws std::runtime_error if
  // `state` is not one of this source.
  virtual std::vector<uint64_t> State() const = 0;
  virtual void Restore(std::span<const uint64_t> state) = 0;

  // Batches held out from training, the same ones every time; empty if the task has none or
  // `settings.validate_every` is 0.
  virtual std::span<const Batch> Validation() const { return {}; }

  // Identifies what the batches are made of beyond the settings: a hash of the text, or 0.
  virtual uint64_t ContentHash() const { return 0; }
};

// The source `settings.data` names. Throws std::runtime_error naming the setting if there is none
// or the settings do not fit it.
std::unique_ptr<DataSource> MakeDataSource(const TrainingSettings& settings);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_DATA_H_
