#include "server/trainer/model/components/components.h"

namespace normlab::trainer {
namespace {

// y_t = mean of x_j over the visible j.
class MeanComponent final : public Component {
 public:
  MeanComponent(bool causal, Value x, Value y)
      : causal_(causal), width_(x.width()), x_value_(x), y_value_(y) {}

  void Bind(Program& program) override {
    program_ = &program;
    x_ = program.Data(x_value_);
    y_ = program.Data(y_value_);
    y_gradient_ = program.GradientOf(y_value_);
    x_gradient_ = program.AddGradient(x_value_);
  }

  void Forward() override {
    program_->kernels().mean_forward(x_, program_->batch(), program_->time(), width_, causal_, y_);
  }

  void Backward() override {
    program_->kernels().mean_backward(y_gradient_, program_->batch(), program_->time(), width_,
                                      causal_, x_gradient_.accumulate, x_gradient_.data);
  }

 private:
  const bool causal_;
  const int64_t width_;
  const Value x_value_;
  const Value y_value_;
  Program* program_ = nullptr;
  const float* x_ = nullptr;
  float* y_ = nullptr;
  const float* y_gradient_ = nullptr;
  GradientSlot x_gradient_;
};

}  // namespace

Value MeanOverVisible(bool causal, Value x) {
  const Value y = x.program->NewValue(x.rows(), x.width());
  Record<MeanComponent>(*x.program, causal, x, y);
  return y;
}

}  // namespace normlab::trainer
