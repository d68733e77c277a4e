#include <string>
#include <vector>

#include "server/trainer/model/components/components.h"

namespace normlab::trainer {
namespace {

// What both norms share: one input, one output of the same width, a gain and numbers kept per row.
class NormComponent : public Component {
 public:
  NormComponent(ParameterTable::Id gain, double epsilon, Value x, Value y)
      : gain_id_(gain),
        epsilon_(static_cast<float>(epsilon)),
        width_(x.width()),
        x_value_(x),
        y_value_(y) {}

  void Bind(Program& program) override {
    program_ = &program;
    rows_ = x_value_.rows();
    x_ = program.Data(x_value_);
    y_ = program.Data(y_value_);
    y_gradient_ = program.GradientOf(y_value_);
    x_gradient_ = program.AddGradient(x_value_);
    inverse_.resize(static_cast<size_t>(rows_));
    gain_ = program.Weights(gain_id_);
    gain_gradient_ = program.WeightGradient(gain_id_);
  }

 protected:
  const ParameterTable::Id gain_id_;
  const float epsilon_;
  const int64_t width_;
  const Value x_value_;
  const Value y_value_;
  Program* program_ = nullptr;
  int64_t rows_ = 0;
  const float* x_ = nullptr;
  float* y_ = nullptr;
  const float* y_gradient_ = nullptr;
  GradientSlot x_gradient_;
  std::vector<float> inverse_;  // 1 / standard deviation, or 1 / root mean square, per row
  const float* gain_ = nullptr;
  float* gain_gradient_ = nullptr;
};

class LayerNormComponent final : public NormComponent {
 public:
  LayerNormComponent(ParameterTable::Id gain, ParameterTable::Id bias, double epsilon, Value x,
                     Value y)
      : NormComponent(gain, epsilon, x, y), bias_id_(bias) {}

  void Bind(Program& program) override {
    NormComponent::Bind(program);
    mean_.resize(static_cast<size_t>(rows_));
    bias_ = program.Weights(bias_id_);
    bias_gradient_ = program.WeightGradient(bias_id_);
  }

  void Forward() override {
    program_->kernels().layer_norm_forward(x_, gain_, bias_, epsilon_, rows_, width_, y_,
                                           mean_.data(), inverse_.data());
  }

  void Backward() override {
    program_->kernels().layer_norm_backward(x_, gain_, mean_.data(), inverse_.data(), y_gradient_,
                                            rows_, width_, x_gradient_.accumulate, x_gradient_.data,
                                            gain_gradient_, bias_gradient_);
  }

 private:
  const ParameterTable::Id bias_id_;
  std::vector<float> mean_;
  const float* bias_ = nullptr;
  float* bias_gradient_ = nullptr;
};

class RmsNormComponent final : public NormComponent {
 public:
  using NormComponent::NormComponent;

  void Forward() override {
    program_->kernels().rms_norm_forward(x_, gain_, epsilon_, rows_, width_, y_, inverse_.data());
  }

  void Backward() override {
    program_->kernels().rms_norm_backward(x_, gain_, inverse_.data(), y_gradient_, rows_, width_,
                                          x_gradient_.accumulate, x_gradient_.data, gain_gradient_);
  }
};

ParameterTable::Id DeclareVector(Value x, std::string_view path, std::string_view name,
                                 float value) {
  const std::string full_path = std::string(path) + "/" + std::string(name);
  return x.program->parameters().Declare(full_path, {x.width()}, Initializer::Constant(value));
}

}  // namespace

Value LayerNorm(std::string_view path, double epsilon, Value x) {
  const auto gain = DeclareVector(x, path, "scale", 1.0f);
  const auto bias = DeclareVector(x, path, "bias", 0.0f);
  const Value y = x.program->NewValue(x.rows(), x.width());
  Record<LayerNormComponent>(*x.program, gain, bias, epsilon, x, y);
  return y;
}

Value RmsNorm(std::string_view path, double epsilon, Value x) {
  const auto gain = DeclareVector(x, path, "scale", 1.0f);
  const Value y = x.program->NewValue(x.rows(), x.width());
  Record<RmsNormComponent>(*x.program, gain, epsilon, x, y);
  return y;
}

}  // namespace normlab::trainer
