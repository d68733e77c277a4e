// Checkpoints: everything that the rest of a run follows from, in one safetensors file.
//
//   block_0/qkv/kernel ...                   the weights under their parameter paths, so that any
//                                            reader of safetensors can use the file
//   normlab/optimizer/first_moment/PATH ...  the optimiser's numbers of each parameter
//   normlab/state/SHARE/INDEX                what a program remembers between steps, by thread
//   normlab/data                             where the data stand, with their random generator
//   normlab/losses                           the window of the spike detector
//   metadata                                 format, step, setting.NAME for what must not differ,
//                                            content_hash of the text, instruction_set,
//                                            normlab_crc32c (safetensors.h)
//
// Dropout needs nothing: its random numbers are a function of the step. Thread count is one of the
// settings that must not differ. Another instruction set is accepted, because a run should survive
// a move to another machine: it then goes on with other roundings, and each attempt records its
// set.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_CHECKPOINT_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_CHECKPOINT_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>

#include "server/trainer/train/data.h"
#include "server/trainer/train/learner.h"
#include "server/trainer/train/spike.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

// What a checkpoint is made of and restored into.
struct TrainingState {
  const TrainingSettings& settings;
  Learner& learner;
  DataSource& data;
  SpikeDetector& spikes;
};

// Restores the state from a checkpoint and returns its step. Throws UnreadableFile (safetensors.h)
// if it is damaged or gone, and std::runtime_error if it was written with settings that differ in
// what changes the numbers (the message names the setting and both values), or is beyond
// settings.steps.
int64_t LoadCheckpoint(const std::string& path, const TrainingState& state);

// Renames a checkpoint that cannot be read to FILE.unreadable, where nobody looks for one. Returns
// what there is to say about it. Throws std::runtime_error if it stays in the way.
std::string PutAside(const std::string& path);

// Why a checkpoint could not be written: no room, no folder, no right to.
class CheckpointNotWritten : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The folder of one run's checkpoints, step-000000000123.safetensors.
class CheckpointFolder {
 public:
  struct Checkpoint {
    std::string file;  // in the folder
    int64_t bytes = 0;
  };

  // Makes the folder (0700) if it is missing. Throws std::runtime_error if that fails, but for a
  // full disk, which may have room when there is something to write.
  CheckpointFolder(const std::string& path, int64_t keep);

  // When it returns the file is whole and on disk, and of the checkpoints up to this step only the
  // latest `keep` are left. Later ones, which a run resumed from an earlier step may find, are not
  // touched until it gets there. Throws CheckpointNotWritten; what was there before is then still
  // there.
  Checkpoint Write(int64_t step, const TrainingState& state);

 private:
  std::error_code Make() const;
  void RemoveOld(int64_t step) const;

  const std::string path_;
  const int64_t keep_;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_CHECKPOINT_H_
