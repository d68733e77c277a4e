#include "server/trainer/model/components/memory.h"

#include <algorithm>
#include <span>

namespace normlab::trainer {
namespace {

class MemoryFilledComponent final : public Component {
 public:
  MemoryFilledComponent(int64_t length, int state, Value y)
      : length_(length), state_(state), y_value_(y) {}

  void Bind(Program& program) override {
    program_ = &program;
    y_ = program.Data(y_value_);
  }

  void Forward() override {
    *y_ = 0;
    if (!program_->training()) return;
    float& filled = program_->State(state_).front();
    *y_ = filled;
    filled = std::min(filled + static_cast<float>(program_->time()), static_cast<float>(length_));
  }

  void Backward() override {}

 private:
  const int64_t length_;
  const int state_;
  const Value y_value_;
  Program* program_ = nullptr;
  float* y_ = nullptr;
};

class WithMemoryComponent final : public Component {
 public:
  WithMemoryComponent(int64_t length, int state, Value x, Value y)
      : length_(length), state_(state), x_value_(x), y_value_(y) {}

  void Bind(Program& program) override {
    program_ = &program;
    x_ = program.Data(x_value_);
    y_ = program.Data(y_value_);
    y_gradient_ = program.GradientOf(y_value_);
    x_gradient_ = program.AddGradient(x_value_);
  }

  void Forward() override {
    const int64_t memory = length_ * x_value_.width();  // floats a sequence
    const int64_t segment = program_->time() * x_value_.width();
    float* state = program_->State(state_).data();
    for (int64_t b = 0; b < program_->batch(); ++b) {
      float* y = y_ + b * (memory + segment);
      std::copy_n(state + b * memory, memory, y);
      std::copy_n(x_ + b * segment, segment, y + memory);
      if (program_->training()) std::copy_n(y + segment, memory, state + b * memory);
    }
  }

  void Backward() override {
    const int64_t memory = length_ * x_value_.width();
    const int64_t segment = program_->time() * x_value_.width();
    for (int64_t b = 0; b < program_->batch(); ++b) {
      program_->kernels().copy(y_gradient_ + b * (memory + segment) + memory, segment,
                               x_gradient_.accumulate, x_gradient_.data + b * segment);
    }
  }

 private:
  const int64_t length_;
  const int state_;
  const Value x_value_;
  const Value y_value_;
  Program* program_ = nullptr;
  const float* x_ = nullptr;
  float* y_ = nullptr;
  const float* y_gradient_ = nullptr;
  GradientSlot x_gradient_;
};

class LatestRowsComponent final : public Component {
 public:
  LatestRowsComponent(Value x, Value y) : x_value_(x), y_value_(y) {}

  void Bind(Program& program) override {
    program_ = &program;
    x_ = program.Data(x_value_);
    y_ = program.Data(y_value_);
    y_gradient_ = program.GradientOf(y_value_);
    x_gradient_ = program.AddGradient(x_value_);
  }

  void Forward() override {
    for (int64_t b = 0; b < program_->batch(); ++b) {
      std::copy_n(x_ + b * All() + All() - Latest(), Latest(), y_ + b * Latest());
    }
  }

  void Backward() override {
    for (int64_t b = 0; b < program_->batch(); ++b) {
      float* gradient = x_gradient_.data + b * All();
      if (!x_gradient_.accumulate) std::fill_n(gradient, All() - Latest(), 0.0f);
      program_->kernels().copy(y_gradient_ + b * Latest(), Latest(), x_gradient_.accumulate,
                               gradient + All() - Latest());
    }
  }

 private:
  // Floats a sequence.
  int64_t All() const { return x_value_.rows() / program_->batch() * x_value_.width(); }
  int64_t Latest() const { return program_->time() * x_value_.width(); }

  const Value x_value_;
  const Value y_value_;
  Program* program_ = nullptr;
  const float* x_ = nullptr;
  float* y_ = nullptr;
  const float* y_gradient_ = nullptr;
  GradientSlot x_gradient_;
};

}  // namespace

Value MemoryFilled(int64_t length, Program& program) {
  const int state = program.NewState(1);
  const Value y = program.NewValue(1, 1);
  Record<MemoryFilledComponent>(program, length, state, y);
  return y;
}

Value WithMemory(int64_t length, Value x) {
  if (length == 0) return x;
  Program& program = *x.program;
  const int state = program.NewState(program.batch() * length * x.width());
  const Value y = program.NewValue(program.batch() * (length + program.time()), x.width());
  Record<WithMemoryComponent>(program, length, state, x, y);
  return y;
}

Value LatestRows(Value x) {
  Program& program = *x.program;
  if (x.rows() == program.rows()) return x;
  const Value y = program.NewValue(x.width());
  Record<LatestRowsComponent>(program, x, y);
  return y;
}

}  // namespace normlab::trainer
