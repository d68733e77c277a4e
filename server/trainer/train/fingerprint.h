// What a run's numbers follow from, for a checkpoint to compare.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_FINGERPRINT_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_FINGERPRINT_H_

#include <map>
#include <string>

#include "server/trainer/trainer.h"

namespace normlab::trainer {

// Text by name of every setting that a resumed run must share with the run it continues. Left out
// are those that only observe or stop training, those that name files, and the initial weights'
// origin, which is over. `steps` is in it only if the schedule depends on it: with constant and
// noam a run may be prolonged, cosine and linear would have had other rates from the start.
std::map<std::string, std::string> Fingerprint(const TrainingSettings& settings);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_FINGERPRINT_H_
