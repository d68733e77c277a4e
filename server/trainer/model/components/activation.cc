#include <stdexcept>
#include <string>

#include "server/trainer/model/components/components.h"

namespace normlab::trainer {
namespace {

[[noreturn]] void ThrowUnknown(std::string_view activation) {
  throw std::runtime_error("activation \"" + std::string(activation) +
                           "\" is not known; known are relu, gelu, gelu-tanh, swiglu");
}

using ForwardKernel = void (*)(const float* x, long count, float* y);
using BackwardKernel = void (*)(const float* x, const float* y_gradient, long count,
                                bool accumulate, float* x_gradient);

// What all activations share: one input, one output.
class ActivationComponent : public Component {
 public:
  ActivationComponent(Value x, Value y) : x_value_(x), y_value_(y) {}

  void Bind(Program& program) override {
    kernels_ = &program.kernels();
    x_ = program.Data(x_value_);
    y_ = program.Data(y_value_);
    y_gradient_ = program.GradientOf(y_value_);
    x_gradient_ = program.AddGradient(x_value_);
  }

 protected:
  const Value x_value_;
  const Value y_value_;
  const Kernels* kernels_ = nullptr;
  const float* x_ = nullptr;
  float* y_ = nullptr;
  const float* y_gradient_ = nullptr;
  GradientSlot x_gradient_;
};

// One number in, one number out.
class PointwiseComponent final : public ActivationComponent {
 public:
  PointwiseComponent(ForwardKernel Kernels::*forward, BackwardKernel Kernels::*backward, Value x,
                     Value y)
      : ActivationComponent(x, y), forward_(forward), backward_(backward) {}

  void Forward() override { (kernels_->*forward_)(x_, Count(), y_); }

  void Backward() override {
    (kernels_->*backward_)(x_, y_gradient_, Count(), x_gradient_.accumulate, x_gradient_.data);
  }

 private:
  int64_t Count() const { return y_value_.rows() * y_value_.width(); }

  ForwardKernel Kernels::*const forward_;
  BackwardKernel Kernels::*const backward_;
};

class SwigluComponent final : public ActivationComponent {
 public:
  using ActivationComponent::ActivationComponent;

  void Forward() override { kernels_->swiglu_forward(x_, y_value_.rows(), y_value_.width(), y_); }

  void Backward() override {
    kernels_->swiglu_backward(x_, y_gradient_, y_value_.rows(), y_value_.width(),
                              x_gradient_.accumulate, x_gradient_.data);
  }
};

Value Pointwise(ForwardKernel Kernels::*forward, BackwardKernel Kernels::*backward, Value x) {
  const Value y = x.program->NewValue(x.rows(), x.width());
  Record<PointwiseComponent>(*x.program, forward, backward, x, y);
  return y;
}

}  // namespace

Value Activate(std::string_view activation, Value x) {
  if (activation == "gelu-tanh") return Gelu(x);
  if (activation == "gelu") return Pointwise(&Kernels::gelu_forward, &Kernels::gelu_backward, x);
  if (activation == "relu") return Pointwise(&Kernels::relu_forward, &Kernels::relu_backward, x);
  if (activation == "swiglu") {
    const Value y = x.program->NewValue(x.rows(), x.width() / 2);
    Record<SwigluComponent>(*x.program, x, y);
    return y;
  }
  ThrowUnknown(activation);
}

int64_t ActivationInputs(std::string_view activation) {
  if (activation == "swiglu") return 2;
  if (activation == "gelu-tanh" || activation == "gelu" || activation == "relu") return 1;
  ThrowUnknown(activation);
}

Value Gelu(Value x) {
  return Pointwise(&Kernels::gelu_tanh_forward, &Kernels::gelu_tanh_backward, x);
}

}  // namespace normlab::trainer
