#include "server/trainer/model/program.h"

#include <algorithm>
#include <stdexcept>

namespace normlab::trainer {
namespace {

constexpr int64_t kAlignment = 16;  // floats in a cache line

}  // namespace

std::array<uint32_t, 2> MomentWords(const Moment& moment) {
  return {static_cast<uint32_t>(moment.step), static_cast<uint32_t>(moment.step >> 32) << 24 |
                                                  static_cast<uint32_t>(moment.batch & 0xFFFFFF)};
}

int64_t Value::width() const { return program->StateOf(*this).width; }
int64_t Value::rows() const { return program->StateOf(*this).rows; }

Program::Program(ParameterTable& parameters, int64_t batch, int64_t time, const Kernels& kernels)
    : parameters_(parameters), batch_(batch), time_(time), kernels_(kernels), device_(nullptr) {
  set_loss_scale(1.0 / static_cast<double>(batch * time));
  inputs_.tokens.resize(static_cast<size_t>(batch * time));
  inputs_.targets.resize(static_cast<size_t>(batch * time));
}

Program::Program(ParameterTable& parameters, int64_t batch, int64_t time, Device& device)
    : parameters_(parameters),
      batch_(batch),
      time_(time),
      kernels_(device.kernels()),
      device_(&device) {}

Value Program::NewValue(int64_t rows, int64_t width) {
  ValueState state;
  state.rows = rows;
  state.width = width;
  state.offset = activation_size_;
  state.maker = static_cast<int>(components_.size());
  activation_size_ += (rows * width + kAlignment - 1) / kAlignment * kAlignment;
  values_.push_back(state);
  return {this, static_cast<int>(values_.size()) - 1};
}

void Program::Append(std::unique_ptr<Component> component) {
  components_.push_back(std::move(component));
}

void Program::Finish(const float* weights, float* gradients) {
  weights_ = weights;
  weight_gradients_ = gradients;
  activations_ = NewBuffer(activation_size_);
  for (int i = static_cast<int>(components_.size()) - 1; i >= 0; --i) {
    components_[static_cast<size_t>(i)]->Bind(*this);
    for (ValueState& value : values_) {
      if (value.maker != i || value.gradient_slot < 0) continue;
      slots_[static_cast<size_t>(value.gradient_slot)]->taken = false;
    }
  }
}

Buffer Program::NewBuffer(std::span<const float> values) const {
  Buffer buffer = NewBuffer(static_cast<int64_t>(values.size()));
  if (device_ != nullptr) {
    device_->CopyIn(values.data(), buffer.data(), values.size_bytes());
  } else {
    std::ranges::copy(values, buffer.data());
  }
  return buffer;
}

StepInputs Program::step_inputs() {
  if (device_ != nullptr) return device_inputs_;
  return {.tokens = inputs_.tokens.data(),
          .targets = inputs_.targets.data(),
          .source = inputs_.source.data(),
          .numbers = inputs_.inputs.data(),
          .loss_scale = &loss_scale_float_,
          .moment = moment_words_.data(),
          .loss_sum = &loss_sum_};
}

float* Program::Data(Value value) { return activations_.data() + StateOf(value).offset; }

const float* Program::GradientOf(Value value) {
  const int64_t slot = StateOf(value).gradient_slot;
  if (slot < 0) throw std::logic_error("a component's output is not used by anything");
  return slots_[static_cast<size_t>(slot)]->buffer.data();
}

GradientSlot Program::AddGradient(Value value) {
  ValueState& state = StateOf(value);
  const bool first = state.gradient_slot < 0;
  if (first) state.gradient_slot = TakeSlot(state.rows * state.width);
  return {slots_[static_cast<size_t>(state.gradient_slot)]->buffer.data(), !first};
}

int64_t Program::TakeSlot(int64_t count) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i]->taken || slots_[i]->count != count) continue;
    slots_[i]->taken = true;
    return static_cast<int64_t>(i);
  }
  auto slot = std::make_unique<Slot>();
  slot->count = count;
  slot->taken = true;
  slot->buffer = NewBuffer(count);
  slots_.push_back(std::move(slot));
  return static_cast<int64_t>(slots_.size()) - 1;
}

const float* Program::Weights(ParameterTable::Id id) const {
  return weights_ + parameters_[id].offset;
}

float* Program::WeightGradient(ParameterTable::Id id) const {
  return weight_gradients_ + parameters_[id].offset;
}

int Program::NewState(int64_t count) {
  states_.emplace_back(count);
  return static_cast<int>(states_.size()) - 1;
}

std::span<float> Program::State(int index) { return states_[static_cast<size_t>(index)].span(); }

void Program::Forward() {
  balance_loss_ = 0;
  for (const auto& component : components_) component->Forward();
}

int Program::ForwardThrough(int first, Value last) {
  const int end = StateOf(last).maker + 1;
  for (int i = first; i < end; ++i) components_[static_cast<size_t>(i)]->Forward();
  return end;
}

void Program::Backward() {
  for (auto component = components_.rbegin(); component != components_.rend(); ++component) {
    (*component)->Backward();
  }
}

}  // namespace normlab::trainer
