// One model being trained: its weights, gradients, optimiser and one program for each thread.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_LEARNER_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_LEARNER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/trainer/model/batch.h"
#include "server/trainer/model/buffer.h"
#include "server/trainer/model/model.h"
#include "server/trainer/model/parameters.h"
#include "server/trainer/model/program.h"
#include "server/trainer/train/device_learner.h"
#include "server/trainer/train/optimizer.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

// On settings.device. On the CPU it splits each batch between `settings.threads` threads by
// sequences; every thread goes forward and back through the whole model, then the gradients are
// added in thread order. The same thread count on the same instruction set gives the same bits. On
// a GPU weights(), gradients(), the optimiser and the values of program(0) are copies on the host
// that Upload() and Download...() bring up to date; on the CPU those do nothing. Not thread-safe.
class Learner {
 public:
  // `settings` must outlive the learner. Throws std::runtime_error for settings it cannot train.
  explicit Learner(const TrainingSettings& settings);

  const ParameterTable& parameters() const { return parameters_; }
  ParameterTable& parameters() { return parameters_; }  // for recording another program
  std::span<float> weights() { return weights_.span(); }
  std::span<const float> gradients() const { return shares_[0].gradients.span(); }

  // The instruction set, or the device's name.
  std::string Processor() const;

  // To the device: weights and optimiser, after they were written here.
  void Upload();
  void DownloadWeights();
  void DownloadOptimizer();
  // Weights, gradients, and what blocks have tapped.
  void DownloadForDiagnostics();

  // For steps that nobody waits for; null on the CPU.
  DeviceLearner* device() { return device_.get(); }

  // The gradients of step `step`: forward and backward over its batches. Returns the mean
  // cross-entropy over all targets that count, not a mean of the batches' means.
  double ComputeGradients(int64_t step, std::span<const Batch> batches);

  // Of the last ComputeGradients(): the balance loss of Switch layers, summed over the layers,
  // without its coefficient, as a mean over the batches; see SwitchLayer(). The loss trained on is
  // the cross-entropy plus balance_coefficient times this.
  double balance_loss() const { return balance_loss_; }

  // Mean cross-entropy over all targets of these batches that count, with dropout off and without
  // memory of what was trained on. Leaves no trace in the training.
  double Evaluate(std::span<const Batch> batches);

  // The programs of the threads, in the order of the batch's sequences, and the models recorded in
  // them: for diagnostics.
  size_t share_count() const { return shares_.size(); }
  Program& program(size_t share) { return *shares_[share].program; }
  const Model& model(size_t share) const { return shares_[share].model; }

  // The Euclidean norm of all gradients, before any clipping. Infinite if one is and none is NaN.
  double GradientNorm();

  // Gradients that are infinite or NaN.
  int64_t NonFiniteCount() const;

  // Scales the gradients down to settings.clip_norm if `norm`, what GradientNorm() said, is above
  // it. An infinite or NaN norm gives nothing to scale by: the gradients then stay what they are,
  // for 0 times infinity would be NaN and hide which of them overflowed.
  void Clip(double norm);

  // The optimiser's step number `step`, from 1.
  void Update(int64_t step, double learning_rate);

  Optimizer& optimizer() { return *optimizer_; }

 private:
  // What one thread works with.
  struct Share {
    std::unique_ptr<Program> program;
    Model model;
    Buffer gradients;
  };

  // The programs' memories between steps, in order.
  using States = std::vector<std::vector<float>>;

  void RecordShares();
  // Sets every memory to zero and returns what was in it.
  States TakeStates();
  void RestoreStates(const States& states);
  // Forward and backward of all shares over one batch.
  void AddGradients(const Batch& batch, const Moment& moment, double loss_scale);
  void SumShares();
  // Calls work(i, begin, end) with the i-th part of the parameter buffer on every thread.
  template <typename Work>
  void ForEachPart(const Work& work);

  const TrainingSettings& settings_;
  ParameterTable parameters_;
  std::vector<Share> shares_;
  Buffer weights_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<DeviceLearner> device_;
  StepRecord record_;  // of the device's last step here
  double balance_loss_ = 0;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_LEARNER_H_
