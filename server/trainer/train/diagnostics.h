// What happens block by block while a model is trained: the series "block/3/gradient_norm" and
// their relatives. Blocks count from 1.
//
//   Diagnostics diagnostics(settings, learner);
//   observer.OnSeries(diagnostics.names());
//   if (diagnostics.Due(step)) diagnostics.BeforeUpdate();   // gradients computed, not yet clipped
//   learner.Update(...);
//   if (diagnostics.Due(step)) values = diagnostics.AfterUpdate();
//
// Only reads: training is bit for bit the same without it.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_DIAGNOSTICS_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_DIAGNOSTICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/trainer/model/buffer.h"
#include "server/trainer/train/learner.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

// For each block, over its parameters, and over the tokens of the step's last batch:
//   gradient_norm    Euclidean norm of the gradients, before clipping
//   weight_norm      of the weights the gradients were computed at
//   update_ratio     norm of the update / weight_norm
//   stream_rms       root mean square of the block's output x'
//   stream_max       largest magnitude in x'
//   attention_ratio  RMS of the attention branch as it is added / RMS of the block's input x;
//                    cross_ratio and mlp_ratio are the same for the other branches
// and with `diagnose_tensors` also "tensor/PATH/gradient_norm" for every parameter.
class Diagnostics {
 public:
  // Both outlive it.
  Diagnostics(const TrainingSettings& settings, Learner& learner);

  // The series, in the order of AfterUpdate's values; empty when diagnosing is off.
  const std::vector<std::string>& names() const { return names_; }

  // At the first step and every diagnose_every-th.
  bool Due(int64_t step) const;

  void BeforeUpdate();
  const std::vector<double>& AfterUpdate();

 private:
  // A run of neighbouring positions in the flat parameter buffer.
  struct Range {
    int64_t begin = 0;
    int64_t count = 0;
  };
  struct BlockPart {
    std::string name;           // "block/4"
    std::vector<Range> ranges;  // of its parameters
  };

  void NameBlocks();
  void NameTensors();
  void AddStream(size_t block);
  double WeightChange(const Range& range) const;

  const TrainingSettings& settings_;
  Learner& learner_;
  std::vector<BlockPart> blocks_;
  std::vector<Range> tensors_;
  std::vector<std::string> names_;
  std::vector<double> values_;
  Buffer weights_before_;
};

// The prefix of a block's series: parameters below "block_3" belong to "block/4".
std::string BlockSeriesName(const std::string& path);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_DIAGNOSTICS_H_
