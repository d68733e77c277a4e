#include "server/trainer/model/components/components.h"

namespace normlab::trainer {
namespace {

// y = a + b; both inputs get the output's gradient.
class AddComponent final : public Component {
 public:
  AddComponent(Value a, Value b, Value y) : a_value_(a), b_value_(b), y_value_(y) {}

  void Bind(Program& program) override {
    kernels_ = &program.kernels();
    count_ = y_value_.rows() * y_value_.width();
    a_ = program.Data(a_value_);
    b_ = program.Data(b_value_);
    y_ = program.Data(y_value_);
    y_gradient_ = program.GradientOf(y_value_);
    a_gradient_ = program.AddGradient(a_value_);
    b_gradient_ = program.AddGradient(b_value_);
  }

  void Forward() override { kernels_->add(a_, b_, count_, y_); }

  void Backward() override {
    kernels_->copy(y_gradient_, count_, a_gradient_.accumulate, a_gradient_.data);
    kernels_->copy(y_gradient_, count_, b_gradient_.accumulate, b_gradient_.data);
  }

 private:
  const Value a_value_;
  const Value b_value_;
  const Value y_value_;
  const Kernels* kernels_ = nullptr;
  int64_t count_ = 0;
  const float* a_ = nullptr;
  const float* b_ = nullptr;
  float* y_ = nullptr;
  const float* y_gradient_ = nullptr;
  GradientSlot a_gradient_;
  GradientSlot b_gradient_;
};

}  // namespace

Value operator+(Value a, Value b) {
  const Value y = a.program->NewValue(a.rows(), a.width());
  Record<AddComponent>(*a.program, a, b, y);
  return y;
}

}  // namespace normlab::trainer
