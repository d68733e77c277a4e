// A run that takes milliseconds.
#ifndef NORMLAB_TESTS_UNIT_TRAINER_SMALL_SETTINGS_H_
#define NORMLAB_TESTS_UNIT_TRAINER_SMALL_SETTINGS_H_

#include "server/trainer/trainer.h"

namespace normlab::trainer {

inline TrainingSettings SmallSettings() {
  TrainingSettings settings;
  settings.layers = 2;
  settings.decoder_layers = 2;
  settings.d_model = 16;
  settings.heads = 2;
  settings.ffn_width = 32;
  settings.vocab_size = 12;
  settings.sequence_length = 8;
  settings.batch_size = 6;
  settings.steps = 20;
  return settings;
}

}  // namespace normlab::trainer

#endif  // NORMLAB_TESTS_UNIT_TRAINER_SMALL_SETTINGS_H_
