#include <algorithm>
#include <cmath>

#include "server/trainer/model/components/components.h"

namespace normlab::trainer {
namespace {

// y = x / (1 - p) where the random bits say so, else 0. The way back draws the same bits again
// instead of keeping them.
class DropoutComponent final : public Component {
 public:
  DropoutComponent(double probability, int64_t seed, int component, Value x, Value y)
      : threshold_(static_cast<uint32_t>(std::min(std::ldexp(probability, 32), 4294967295.0))),
        scale_(static_cast<float>(1.0 / (1.0 - probability))),
        x_value_(x),
        y_value_(y) {
    const auto bits = static_cast<uint64_t>(seed);
    stream_.key[0] = static_cast<uint32_t>(bits);
    stream_.key[1] = static_cast<uint32_t>(bits >> 32);
    stream_.component = static_cast<uint32_t>(component);
  }

  void Bind(Program& program) override {
    program_ = &program;
    x_ = program.Data(x_value_);
    y_ = program.Data(y_value_);
    y_gradient_ = program.GradientOf(y_value_);
    x_gradient_ = program.AddGradient(x_value_);
  }

  void Forward() override {
    active_ = program_->training();
    stream_.moment = program_->step_inputs().moment;
    Pass(x_, false, y_);
  }

  void Backward() override { Pass(y_gradient_, x_gradient_.accumulate, x_gradient_.data); }

 private:
  // Both ways are the same: the mask is symmetric.
  void Pass(const float* from, bool accumulate, float* to) const {
    const int64_t rows = y_value_.rows();
    const int64_t width = y_value_.width();
    if (!active_) return program_->kernels().copy(from, rows * width, accumulate, to);
    const int64_t rows_a_sequence = rows / program_->batch();
    const auto first_row = static_cast<uint32_t>(program_->first_sequence() * rows_a_sequence);
    program_->kernels().dropout(from, rows, width, stream_, first_row, threshold_, scale_,
                                accumulate, to);
  }

  const uint32_t threshold_;  // of 2^32 random values, so many drop
  const float scale_;
  const Value x_value_;
  const Value y_value_;
  RandomStream stream_;
  bool active_ = false;  // in the last Forward
  Program* program_ = nullptr;
  const float* x_ = nullptr;
  float* y_ = nullptr;
  const float* y_gradient_ = nullptr;
  GradientSlot x_gradient_;
};

}  // namespace

Value Dropout(double probability, int64_t seed, Value x) {
  if (probability == 0) return x;
  const int component = x.program->NewRandomStream();
  const Value y = x.program->NewValue(x.rows(), x.width());
  Record<DropoutComponent>(*x.program, probability, seed, component, x, y);
  return y;
}

}  // namespace normlab::trainer
