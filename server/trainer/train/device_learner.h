// A model being trained on a device that the host does not wait for.
//
//   DeviceLearner learner(settings, parameters, optimizer.States(), device);
//   learner.Upload(weights, optimizer.States());
//   learner.GiveStep(step, batches, rate);              // returns at once
//   if (auto record = learner.RecordOf(step)) ...       // when the device has come so far
//
// All numbers that change from step to step go to the device in one copy at the beginning of a
// step, from one of kAhead slots; what a step turned out to be is written by the device into that
// slot's record. Nothing else passes between the two.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_DEVICE_LEARNER_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_DEVICE_LEARNER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "server/trainer/model/batch.h"
#include "server/trainer/model/buffer.h"
#include "server/trainer/model/device.h"
#include "server/trainer/model/parameters.h"
#include "server/trainer/model/program.h"
#include "server/trainer/train/optimizer.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

class DeviceLearner {
 public:
  // So many steps may be given before the record of the first is read.
  static constexpr int64_t kAhead = 64;

  // Records the model of `settings`; all arguments outlive the learner. `states` says only how many
  // there are. Throws std::runtime_error naming the setting if it cannot be trained on a device.
  DeviceLearner(const TrainingSettings& settings, ParameterTable& parameters,
                std::span<const Optimizer::State> states, Device& device);
  // Waits for what was given.
  ~DeviceLearner();
  DeviceLearner(const DeviceLearner&) = delete;
  DeviceLearner& operator=(const DeviceLearner&) = delete;

  // The weights and the optimiser's states, in and out. The ways out wait.
  void Upload(std::span<const float> weights, std::span<const Optimizer::State> states);
  void DownloadWeights(std::span<float> weights);
  void DownloadStates(std::span<const Optimizer::State> states);
  void DownloadGradients(std::span<float> gradients);
  // Of the model's last pass; `value` as recorded in any program of these settings.
  void DownloadValue(Value value, std::span<float> to);

  // Gives the device the gradients of step `step`, and its record.
  void GiveGradients(int64_t step, std::span<const Batch> batches);
  // The same again, from what is still in the step's slot.
  void RepeatGradients(int64_t step);
  // Gives the update with the gradients given last. Only when their record has been read.
  void GiveUpdate(int64_t step, double learning_rate);
  // Both, in one recorded piece if settings.cuda_graph.
  void GiveStep(int64_t step, std::span<const Batch> batches, double learning_rate);

  // Null until the device has got there.
  std::optional<StepRecord> RecordOf(int64_t step) const;
  StepRecord WaitFor(int64_t step);

  // Mean cross-entropy over all targets of these batches that count, with dropout off.
  double Evaluate(std::span<const Batch> batches);

  Device& device() { return device_; }

 private:
  // Host memory that the device may read and write.
  class Shared {
   public:
    Shared(Device& device, size_t bytes);
    ~Shared();
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    std::byte* data() const { return data_; }

   private:
    Device& device_;
    std::byte* data_;
  };

  // Where the parts of a slot begin, in bytes: StepNumbers at 0, then the batches.
  struct Layout {
    explicit Layout(const TrainingSettings& settings);
    size_t Batch(int64_t i) const { return numbers + static_cast<size_t>(i) * batch; }

    size_t numbers;     // room of StepNumbers
    size_t moment = 0;  // from the beginning of a batch
    size_t tokens;
    size_t targets;
    size_t inputs;
    size_t batch;  // room of a batch
    size_t slot;   // room of it all
  };

  std::byte* Slot(int64_t step) const;
  StepNumbers& NumbersOf(std::byte* slot) const;
  void FillSlot(std::byte* slot, int64_t step, std::span<const Batch> batches,
                double learning_rate) const;
  void FillBatch(std::byte* to, const Moment& moment, const Batch& batch) const;
  void CopySlotIn(const std::byte* slot);
  // What is read in the model's pass over batch `i`.
  StepInputs InputsOf(int64_t i);

  // The kernels of a step, in order.
  void RunGradients();
  void RunUpdate();

  const TrainingSettings& settings_;
  Device& device_;
  const StepKernels& kernels_;
  const Layout layout_;
  const std::vector<DecaySegment> segments_;
  Program program_;
  const int64_t size_;  // floats of the parameter buffer
  Buffer weights_;
  Buffer gradients_;
  std::vector<Buffer> states_;  // of the optimiser
  Buffer step_;                 // a slot on the device
  Buffer step_state_;           // StepState
  Shared slots_;                // kAhead, and one for Evaluate()
  Shared records_;              // kAhead StepRecords
  bool warm_ = false;           // a step has been run: the libraries have what they need
  bool recorded_ = false;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_DEVICE_LEARNER_H_
