#include <cmath>
#include <vector>

#include "server/trainer/model/buffer.h"
#include "server/trainer/model/components/components.h"

namespace normlab::trainer {
namespace {

// Turns pairs of columns of q and k; the way back turns the gradients the other way, because the
// inverse of a rotation is its transpose.
class RotaryComponent final : public Component {
 public:
  RotaryComponent(int64_t heads, Value x, Value y)
      : width_(x.width() / 3), pairs_(width_ / heads / 2), x_value_(x), y_value_(y) {}

  void Bind(Program& program) override {
    program_ = &program;
    FillAngles();
    x_ = program.Data(x_value_);
    y_ = program.Data(y_value_);
    y_gradient_ = program.GradientOf(y_value_);
    x_gradient_ = program.AddGradient(x_value_);
  }

  void Forward() override { Turn(x_, 1.0f, false, y_); }

  void Backward() override { Turn(y_gradient_, -1.0f, x_gradient_.accumulate, x_gradient_.data); }

 private:
  void FillAngles() {
    const int64_t time = program_->time();
    std::vector<float> cosines(static_cast<size_t>(time * pairs_));
    std::vector<float> sines(cosines.size());
    for (int64_t t = 0; t < time; ++t) {
      for (int64_t i = 0; i < pairs_; ++i) {
        const double exponent = static_cast<double>(i) / static_cast<double>(pairs_);
        const double angle = static_cast<double>(t) / std::pow(10000.0, exponent);
        cosines[static_cast<size_t>(t * pairs_ + i)] = static_cast<float>(std::cos(angle));
        sines[static_cast<size_t>(t * pairs_ + i)] = static_cast<float>(std::sin(angle));
      }
    }
    cosines_ = program_->NewBuffer(cosines);
    sines_ = program_->NewBuffer(sines);
  }

  // `direction` 1 turns by the angles, -1 back.
  void Turn(const float* from, float direction, bool accumulate, float* to) const {
    program_->kernels().rotate(from, cosines_.data(), sines_.data(), direction, program_->rows(),
                               program_->time(), width_, pairs_, accumulate, to);
  }

  const int64_t width_;
  const int64_t pairs_;  // of columns in a head
  const Value x_value_;
  const Value y_value_;
  Program* program_ = nullptr;
  Buffer cosines_;  // [time, pairs]
  Buffer sines_;
  const float* x_ = nullptr;
  float* y_ = nullptr;
  const float* y_gradient_ = nullptr;
  GradientSlot x_gradient_;
};

}  // namespace

Value Rotate(int64_t heads, Value qkv) {
  const Value y = qkv.program->NewValue(qkv.rows(), qkv.width());
  Record<RotaryComponent>(*qkv.program, heads, qkv, y);
  return y;
}

}  // namespace normlab::trainer
