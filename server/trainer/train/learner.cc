#include "server/trainer/train/learner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "server/trainer/model/initialization.h"
#include "server/trainer/train/schedule.h"
#include "server/trainer/train/threads.h"

namespace normlab::trainer {
namespace {

void CheckTrainingSettings(const TrainingSettings& settings) {
  CheckOptimizer(settings);
  CheckSchedule(settings);
  for (const auto& [name, value] :
       {std::pair{"threads", settings.threads}, std::pair{"accumulate", settings.accumulate}}) {
    if (value >= 1) continue;
    throw std::runtime_error(std::string(name) + " must be at least 1, not " +
                             std::to_string(value));
  }
  if (settings.cuda_graph && settings.device == "cpu") {
    throw std::runtime_error("cuda_graph records steps of a GPU; device is \"cpu\"");
  }
}

// The sequences of the batch that are the program's, each field with `per_sequence` entries.
template <typename T>
void CopyField(const std::vector<T>& field, int64_t per_sequence, const Program& program,
               std::vector<T>& part) {
  if (field.empty()) return;
  const auto begin = field.begin() + program.first_sequence() * per_sequence;
  part.assign(begin, begin + program.batch() * per_sequence);
}

void CopyShare(const Batch& batch, const TrainingSettings& settings, Program& program) {
  const int64_t time = settings.sequence_length;
  CopyField(batch.tokens, time, program, program.inputs().tokens);
  CopyField(batch.targets, time, program, program.inputs().targets);
  CopyField(batch.source, time, program, program.inputs().source);
  CopyField(batch.source_lengths, 1, program, program.inputs().source_lengths);
  CopyField(batch.inputs, time * settings.d_model, program, program.inputs().inputs);
}

}  // namespace

Learner::Learner(const TrainingSettings& settings) : settings_(settings) {
  CheckTrainingSettings(settings);
  CheckModelSettings(settings);
  Device* device = FindDevice(settings.device);
  RecordShares();
  weights_ = Buffer(parameters_.buffer_size());
  InitializeParameters(settings, parameters_, weights_.span());
  for (Share& share : shares_) {
    share.gradients = Buffer(parameters_.buffer_size());
    share.program->Finish(weights_.data(), share.gradients.data());
  }
  optimizer_ = MakeOptimizer(settings, parameters_);
  if (device == nullptr) return;
  device->budget().Limit(static_cast<size_t>(settings.gpu_memory_bytes),
                         static_cast<size_t>(settings.gpu_context_bytes));
  device_ = std::make_unique<DeviceLearner>(settings, parameters_, optimizer_->States(), *device);
  Upload();
}

std::string Learner::Processor() const {
  if (device_ == nullptr) return BestKernels().instruction_set;
  const Device& device = device_->device();
  return std::string(device.kernels().instruction_set) + " (" + device.Description() + ")";
}

void Learner::Upload() {
  if (device_ != nullptr) device_->Upload(weights_.span(), optimizer_->States());
}

void Learner::DownloadWeights() {
  if (device_ != nullptr) device_->DownloadWeights(weights_.span());
}

void Learner::DownloadOptimizer() {
  if (device_ != nullptr) device_->DownloadStates(optimizer_->States());
}

void Learner::DownloadForDiagnostics() {
  if (device_ == nullptr) return;
  DownloadWeights();
  device_->DownloadGradients(shares_[0].gradients.span());
  Program& program = *shares_[0].program;
  const auto download = [&](Value value) {
    const auto count = static_cast<size_t>(value.rows() * value.width());
    device_->DownloadValue(value, {program.Data(value), count});
  };
  for (const BlockTaps& taps : shares_[0].model.blocks) {
    download(taps.input);
    download(taps.output);
    for (const Value& branch : taps.branches) download(branch);
  }
}

void Learner::RecordShares() {
  // Experts have room for tokens of the whole batch, so Switch layers need it in one program;
  // threads then help inside large products only.
  // Of a run on a device there is one as well: it shows the device's numbers to diagnostics.
  const bool whole = settings_.ffn == "switch" || settings_.device != "cpu";
  const int64_t count = whole ? 1 : std::min(settings_.threads, settings_.batch_size);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = settings_.batch_size * i / count;
    const int64_t end = settings_.batch_size * (i + 1) / count;
    Share share;
    share.program = std::make_unique<Program>(parameters_, end - begin, settings_.sequence_length);
    share.program->set_first_sequence(begin);
    share.model = RecordModel(settings_, *share.program);
    shares_.push_back(std::move(share));
  }
}

template <typename Work>
void Learner::ForEachPart(const Work& work) {
  const auto count = static_cast<int64_t>(shares_.size());
  const int64_t lines = parameters_.buffer_size() / 16;  // whole cache lines
  RunOnThreads(count, [&](int64_t i) {
    work(static_cast<size_t>(i), lines * i / count * 16, lines * (i + 1) / count * 16);
  });
}

double Learner::ComputeGradients(int64_t step, std::span<const Batch> batches) {
  if (device_ != nullptr) {
    device_->GiveGradients(step, batches);
    record_ = device_->WaitFor(step);
    return record_.loss;
  }
  int64_t counted = 0;
  for (const Batch& batch : batches) counted += CountedTargets(batch);
  if (counted == 0) throw std::runtime_error("no target of the step counts in the loss");
  for (Share& share : shares_) std::ranges::fill(share.gradients.span(), 0.0f);
  double loss = 0;
  balance_loss_ = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    const Moment moment = {.step = step, .batch = static_cast<int64_t>(i)};
    AddGradients(batches[i], moment, 1.0 / static_cast<double>(counted));
    for (const Share& share : shares_) {
      loss += share.program->loss();
      balance_loss_ += share.program->balance_loss();
    }
  }
  SumShares();
  return loss;
}

void Learner::AddGradients(const Batch& batch, const Moment& moment, double loss_scale) {
  RunOnThreads(static_cast<int64_t>(shares_.size()), [&](int64_t i) {
    Program& program = *shares_[static_cast<size_t>(i)].program;
    CopyShare(batch, settings_, program);
    program.set_moment(moment);
    program.set_loss_scale(loss_scale);
    program.Forward();
    program.Backward();
  });
}

void Learner::SumShares() {
  if (shares_.size() == 1) return;
  ForEachPart([&](size_t, int64_t begin, int64_t end) {
    for (size_t i = 1; i < shares_.size(); ++i) {
      BestKernels().copy(shares_[i].gradients.data() + begin, end - begin, true,
                         shares_[0].gradients.data() + begin);
    }
  });
}

double Learner::Evaluate(std::span<const Batch> batches) {
  if (device_ != nullptr) return device_->Evaluate(batches);
  int64_t counted = 0;
  for (const Batch& batch : batches) counted += CountedTargets(batch);
  const States states = TakeStates();
  for (Share& share : shares_) {
    share.program->set_training(false);
    share.program->set_loss_scale(1.0 / static_cast<double>(counted));
  }
  double loss = 0;
  for (const Batch& batch : batches) {
    RunOnThreads(static_cast<int64_t>(shares_.size()), [&](int64_t i) {
      Program& program = *shares_[static_cast<size_t>(i)].program;
      CopyShare(batch, settings_, program);
      program.Forward();
    });
    for (const Share& share : shares_) loss += share.program->loss();
  }
  for (Share& share : shares_) share.program->set_training(true);
  RestoreStates(states);
  return loss;
}

Learner::States Learner::TakeStates() {
  States states;
  for (Share& share : shares_) {
    for (int i = 0; i < share.program->state_count(); ++i) {
      const std::span<float> state = share.program->State(i);
      states.emplace_back(state.begin(), state.end());
      std::ranges::fill(state, 0.0f);
    }
  }
  return states;
}

void Learner::RestoreStates(const States& states) {
  auto saved = states.begin();
  for (Share& share : shares_) {
    for (int i = 0; i < share.program->state_count(); ++i, ++saved) {
      std::ranges::copy(*saved, share.program->State(i).begin());
    }
  }
}

double Learner::GradientNorm() {
  if (device_ != nullptr) return record_.gradient_norm;
  std::vector<double> squares(shares_.size());
  ForEachPart([&](size_t i, int64_t begin, int64_t end) {
    squares[i] = BestKernels().sum_of_squares(shares_[0].gradients.data() + begin, end - begin);
  });
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

int64_t Learner::NonFiniteCount() const {
  if (device_ != nullptr) return static_cast<int64_t>(record_.non_finite);
  return std::ranges::count_if(gradients(), [](float x) { return !std::isfinite(x); });
}

void Learner::Clip(double norm) {
  if (device_ != nullptr) return;  // its update clips
  if (settings_.clip_norm <= 0 || !(norm > settings_.clip_norm) || std::isinf(norm)) return;
  const auto scale = static_cast<float>(settings_.clip_norm / norm);
  ForEachPart([&](size_t, int64_t begin, int64_t end) {
    float* gradients = shares_[0].gradients.data();
    for (int64_t i = begin; i < end; ++i) gradients[i] *= scale;
  });
}

void Learner::Update(int64_t step, double learning_rate) {
  if (device_ != nullptr) return device_->GiveUpdate(step, learning_rate);
  ForEachPart([&](size_t, int64_t begin, int64_t end) {
    optimizer_->Update(step, learning_rate, begin, end, shares_[0].gradients.data(),
                       weights_.data());
  });
}

}  // namespace normlab::trainer
