#include "server/trainer/train/device_learner.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "server/trainer/model/model.h"
#include "server/trainer/train/schedule.h"

namespace normlab::trainer {
namespace {

// Every part of a slot begins on a line of its own.
size_t RoundUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

int64_t FloatsFor(size_t bytes) { return static_cast<int64_t>((bytes + 3) / 4); }

template <typename T>
void CopyTo(std::byte* to, const std::vector<T>& values) {
  if (!values.empty()) std::memcpy(to, values.data(), values.size() * sizeof(T));
}

}  // namespace

DeviceLearner::Shared::Shared(Device& device, size_t bytes)
    : device_(device), data_(static_cast<std::byte*>(device.AllocateShared(bytes))) {}

DeviceLearner::Shared::~Shared() { device_.FreeShared(data_); }

DeviceLearner::Layout::Layout(const TrainingSettings& settings) {
  const auto rows = static_cast<size_t>(settings.batch_size * settings.sequence_length);
  const size_t numbers_of_a_row =
      settings.data == "gaussian" ? static_cast<size_t>(settings.d_model) : 0;
  numbers = RoundUp(sizeof(StepNumbers));
  tokens = moment + RoundUp(sizeof(std::array<uint32_t, 2>));
  targets = tokens + RoundUp(rows * sizeof(int32_t));
  inputs = targets + RoundUp(rows * sizeof(int32_t));
  batch = inputs + RoundUp(rows * numbers_of_a_row * sizeof(float));
  slot = Batch(settings.accumulate);
}

DeviceLearner::DeviceLearner(const TrainingSettings& settings, ParameterTable& parameters,
                             std::span<const Optimizer::State> states, Device& device)
    : settings_(settings),
      device_(device),
      kernels_(device.step_kernels()),
      layout_(settings),
      segments_(DecaySegments(settings, parameters)),
      program_(parameters, settings.batch_size, settings.sequence_length, device),
      size_(parameters.buffer_size()),
      weights_(size_, &device),
      gradients_(size_, &device),
      step_(FloatsFor(layout_.slot), &device),
      step_state_(FloatsFor(sizeof(StepState)), &device),
      slots_(device, layout_.slot * (kAhead + 1)),
      records_(device, sizeof(StepRecord) * kAhead) {
  device_.UseOnThisThread();
  for (size_t i = 0; i < states.size(); ++i) states_.emplace_back(size_, &device);
  RecordModel(settings, program_);
  program_.Finish(weights_.data(), gradients_.data());
  const StepState state;
  device_.CopyIn(&state, step_state_.data(), sizeof(state));
}

DeviceLearner::~DeviceLearner() {
  try {
    device_.Wait();
  } catch (const std::runtime_error&) {
    // Whoever ended the run has been told already, or does not care.
  }
}

void DeviceLearner::Upload(std::span<const float> weights,
                           std::span<const Optimizer::State> states) {
  device_.CopyIn(weights.data(), weights_.data(), weights.size_bytes());
  for (size_t i = 0; i < states.size(); ++i) {
    device_.CopyIn(states[i].values.data(), states_[i].data(), states[i].values.size_bytes());
  }
}

void DeviceLearner::DownloadWeights(std::span<float> weights) {
  device_.CopyOut(weights_.data(), weights.data(), weights.size_bytes());
}

void DeviceLearner::DownloadStates(std::span<const Optimizer::State> states) {
  for (size_t i = 0; i < states.size(); ++i) {
    device_.CopyOut(states_[i].data(), states[i].values.data(), states[i].values.size_bytes());
  }
}

void DeviceLearner::DownloadGradients(std::span<float> gradients) {
  device_.CopyOut(gradients_.data(), gradients.data(), gradients.size_bytes());
}

void DeviceLearner::DownloadValue(Value value, std::span<float> to) {
  value.program = &program_;
  device_.CopyOut(program_.Data(value), to.data(), to.size_bytes());
}

void DeviceLearner::GiveGradients(int64_t step, std::span<const Batch> batches) {
  FillSlot(Slot(step), step, batches, LearningRate(settings_, step));
  RepeatGradients(step);
}

void DeviceLearner::RepeatGradients(int64_t step) {
  CopySlotIn(Slot(step));
  RunGradients();
  warm_ = true;
}

void DeviceLearner::GiveUpdate(int64_t step, double learning_rate) {
  // The device has read this slot: the step's record is there.
  NumbersOf(Slot(step)).rate = static_cast<float>(learning_rate);
  CopySlotIn(Slot(step));
  RunUpdate();
}

void DeviceLearner::GiveStep(int64_t step, std::span<const Batch> batches, double learning_rate) {
  FillSlot(Slot(step), step, batches, learning_rate);
  CopySlotIn(Slot(step));
  if (settings_.cuda_graph && warm_ && !recorded_) {
    device_.BeginRecording();
    RunGradients();
    RunUpdate();
    device_.EndRecording();
    recorded_ = true;
  }
  if (recorded_) return device_.Replay();
  RunGradients();
  RunUpdate();
  warm_ = true;
}

std::optional<StepRecord> DeviceLearner::RecordOf(int64_t step) const {
  StepRecord& record = reinterpret_cast<StepRecord*>(records_.data())[step % kAhead];
  const std::atomic_ref<long> written(record.step);
  if (written.load(std::memory_order_acquire) != step) return std::nullopt;
  return record;
}

StepRecord DeviceLearner::WaitFor(int64_t step) {
  while (true) {
    // In this order: what an idle device has not written will not come.
    const bool idle = device_.IsIdle();
    if (const std::optional<StepRecord> record = RecordOf(step)) return *record;
    if (idle) throw std::logic_error("the device did not do the step it was given");
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

double DeviceLearner::Evaluate(std::span<const Batch> batches) {
  std::byte* slot = slots_.data() + layout_.slot * kAhead;
  auto* state = reinterpret_cast<StepState*>(step_state_.data());
  int64_t counted = 0;
  double loss = 0;
  program_.set_training(false);
  for (const Batch& batch : batches) {
    counted += CountedTargets(batch);
    FillBatch(slot + layout_.Batch(0), {}, batch);
    CopySlotIn(slot);
    program_.set_device_inputs(InputsOf(0));
    program_.Forward();
    double sum = 0;
    device_.CopyOut(&state->batch_loss, &sum, sizeof(sum));
    loss += sum;
  }
  program_.set_training(true);
  return loss / static_cast<double>(counted);
}

std::byte* DeviceLearner::Slot(int64_t step) const {
  return slots_.data() + layout_.slot * static_cast<size_t>(step % kAhead);
}

StepNumbers& DeviceLearner::NumbersOf(std::byte* slot) const {
  return *reinterpret_cast<StepNumbers*>(slot);
}

void DeviceLearner::FillSlot(std::byte* slot, int64_t step, std::span<const Batch> batches,
                             double learning_rate) const {
  int64_t counted = 0;
  for (const Batch& batch : batches) counted += CountedTargets(batch);
  if (counted == 0) throw std::runtime_error("no target of the step counts in the loss");
  StepNumbers& numbers = *new (slot) StepNumbers;
  numbers.loss_scale = 1.0 / static_cast<double>(counted);
  numbers.loss_scale_float = static_cast<float>(numbers.loss_scale);
  numbers.rate = static_cast<float>(learning_rate);
  numbers.m_correction = BiasCorrection(settings_.beta1, step);
  numbers.v_correction = BiasCorrection(settings_.beta2, step);
  numbers.step = step;
  numbers.slot = step % kAhead;
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    FillBatch(slot + layout_.Batch(index), {.step = step, .batch = index}, batches[i]);
  }
}

void DeviceLearner::FillBatch(std::byte* to, const Moment& moment, const Batch& batch) const {
  const std::array<uint32_t, 2> words = MomentWords(moment);
  std::memcpy(to + layout_.moment, words.data(), sizeof(words));
  CopyTo(to + layout_.tokens, batch.tokens);
  CopyTo(to + layout_.targets, batch.targets);
  CopyTo(to + layout_.inputs, batch.inputs);
}

void DeviceLearner::CopySlotIn(const std::byte* slot) {
  device_.CopyIn(slot, step_.data(), layout_.slot);
}

StepInputs DeviceLearner::InputsOf(int64_t i) {
  const auto* slot = reinterpret_cast<const std::byte*>(step_.data());
  const std::byte* batch = slot + layout_.Batch(i);
  return {.tokens = reinterpret_cast<const int32_t*>(batch + layout_.tokens),
          .targets = reinterpret_cast<const int32_t*>(batch + layout_.targets),
          .numbers = reinterpret_cast<const float*>(batch + layout_.inputs),
          .loss_scale = &reinterpret_cast<const StepNumbers*>(slot)->loss_scale_float,
          .moment = reinterpret_cast<const uint32_t*>(batch + layout_.moment),
          .loss_sum = &reinterpret_cast<StepState*>(step_state_.data())->batch_loss};
}

void DeviceLearner::RunGradients() {
  const auto* numbers = reinterpret_cast<const StepNumbers*>(step_.data());
  auto* state = reinterpret_cast<StepState*>(step_state_.data());
  kernels_.begin_step(state);
  program_.kernels().fill_rows(nullptr, 1, size_, gradients_.data());
  for (int64_t i = 0; i < settings_.accumulate; ++i) {
    program_.set_device_inputs(InputsOf(i));
    program_.Forward();
    program_.Backward();
    kernels_.add_loss(numbers, state);
  }
  kernels_.measure_gradients(gradients_.data(), size_, state);
  kernels_.finish_step(numbers, settings_.clip_norm, settings_.stop_on_non_finite, state,
                       reinterpret_cast<StepRecord*>(records_.data()));
}

void DeviceLearner::RunUpdate() {
  const auto* numbers = reinterpret_cast<const StepNumbers*>(step_.data());
  const auto* state = reinterpret_cast<const StepState*>(step_state_.data());
  for (const DecaySegment& segment : segments_) {
    const int64_t count = segment.end - segment.begin;
    const float* gradients = gradients_.data() + segment.begin;
    float* weights = weights_.data() + segment.begin;
    if (settings_.optimizer == "sgd") {
      kernels_.sgd(numbers, state, gradients, count, static_cast<float>(settings_.momentum),
                   segment.decay, weights, states_[0].data() + segment.begin);
    } else {
      kernels_.adamw(numbers, state, gradients, count, static_cast<float>(settings_.beta1),
                     static_cast<float>(settings_.beta2), static_cast<float>(settings_.epsilon),
                     segment.decay, weights, states_[0].data() + segment.begin,
                     states_[1].data() + segment.begin);
    }
  }
}

}  // namespace normlab::trainer
