#include <cmath>
#include <vector>

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

  void Forward() override { RotateRows(x_, 1.0f, false, y_); }

  void Backward() override {
    RotateRows(y_gradient_, -1.0f, x_gradient_.accumulate, x_gradient_.data);
  }

 private:
  void FillAngles() {
    const int64_t time = program_->time();
    cosines_.resize(static_cast<size_t>(time * pairs_));
    sines_.resize(cosines_.size());
    for (int64_t t = 0; t < time; ++t) {
      for (int64_t i = 0; i < pairs_; ++i) {
        const double exponent = static_cast<double>(i) / static_cast<double>(pairs_);
        const double angle = static_cast<double>(t) / std::pow(10000.0, exponent);
        cosines_[static_cast<size_t>(t * pairs_ + i)] = static_cast<float>(std::cos(angle));
        sines_[static_cast<size_t>(t * pairs_ + i)] = static_cast<float>(std::sin(angle));
      }
    }
  }

  // `direction` 1 turns by the angles, -1 back.
  void RotateRows(const float* from, float direction, bool accumulate, float* to) const {
    for (int64_t row = 0; row < program_->rows(); ++row, from += 3 * width_, to += 3 * width_) {
      const size_t first = static_cast<size_t>(row % program_->time() * pairs_);
      for (int64_t c = 0; c < 2 * width_; c += 2) {  // q, then k
        const size_t angle = first + static_cast<size_t>(c / 2 % pairs_);
        const float cosine = cosines_[angle];
        const float sine = direction * sines_[angle];
        const float even = from[c] * cosine - from[c + 1] * sine;
        const float odd = from[c] * sine + from[c + 1] * cosine;
        to[c] = accumulate ? to[c] + even : even;
        to[c + 1] = accumulate ? to[c + 1] + odd : odd;
      }
      program_->kernels().copy(from + 2 * width_, width_, accumulate, to + 2 * width_);
    }
  }

  const int64_t width_;
  const int64_t pairs_;  // of columns in a head
  const Value x_value_;
  const Value y_value_;
  Program* program_ = nullptr;
  std::vector<float> cosines_;  // [time, pairs]
  std::vector<float> sines_;
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
