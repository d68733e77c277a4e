#include <string>
#include <utility>

#include "server/trainer/model/buffer.h"
#include "server/trainer/model/components/components.h"
#include "server/trainer/model/components/row_vector.h"

namespace normlab::trainer {
namespace {

// What the norms share: one input, one output of the same shape, and a gain.
class NormComponent : public Component {
 public:
  NormComponent(RowVector gain, Value x, Value y)
      : width_(x.width()), x_value_(x), y_value_(y), gain_(std::move(gain)) {}

  void Bind(Program& program) override {
    program_ = &program;
    rows_ = x_value_.rows();
    x_ = program.Data(x_value_);
    y_ = program.Data(y_value_);
    y_gradient_ = program.GradientOf(y_value_);
    x_gradient_ = program.AddGradient(x_value_);
    gain_.Bind(program);
  }

 protected:
  const int64_t width_;
  const Value x_value_;
  const Value y_value_;
  RowVector gain_;
  Program* program_ = nullptr;
  int64_t rows_ = 0;
  const float* x_ = nullptr;
  float* y_ = nullptr;
  const float* y_gradient_ = nullptr;
  GradientSlot x_gradient_;
};

class LayerNormComponent final : public NormComponent {
 public:
  LayerNormComponent(RowVector gain, RowVector bias, double epsilon, Value x, Value y)
      : NormComponent(std::move(gain), x, y),
        bias_(std::move(bias)),
        epsilon_(static_cast<float>(epsilon)) {}

  void Bind(Program& program) override {
    NormComponent::Bind(program);
    bias_.Bind(program);
    mean_ = program.NewBuffer(rows_);
    inverse_ = program.NewBuffer(rows_);
  }

  void Forward() override {
    program_->kernels().layer_norm_forward(x_, gain_.values(), bias_.values(), epsilon_, rows_,
                                           width_, y_, mean_.data(), inverse_.data());
  }

  void Backward() override {
    program_->kernels().layer_norm_backward(x_, gain_.values(), mean_.data(), inverse_.data(),
                                            y_gradient_, rows_, width_, x_gradient_.accumulate,
                                            x_gradient_.data, gain_.gradient(), bias_.gradient());
  }

 private:
  RowVector bias_;
  const float epsilon_;
  Buffer mean_;
  Buffer inverse_;  // 1 / standard deviation of each row
};

class RmsNormComponent final : public NormComponent {
 public:
  RmsNormComponent(RowVector gain, double epsilon, Value x, Value y)
      : NormComponent(std::move(gain), x, y), epsilon_(static_cast<float>(epsilon)) {}

  void Bind(Program& program) override {
    NormComponent::Bind(program);
    inverse_ = program.NewBuffer(rows_);
  }

  void Forward() override {
    program_->kernels().rms_norm_forward(x_, gain_.values(), epsilon_, rows_, width_, y_,
                                         inverse_.data());
  }

  void Backward() override {
    program_->kernels().rms_norm_backward(x_, gain_.values(), inverse_.data(), y_gradient_, rows_,
                                          width_, x_gradient_.accumulate, x_gradient_.data,
                                          gain_.gradient());
  }

 private:
  const float epsilon_;
  Buffer inverse_;  // 1 / root mean square of each row
};

class DyTComponent final : public NormComponent {
 public:
  DyTComponent(ParameterTable::Id alpha, RowVector gain, RowVector bias, Value x, Value y)
      : NormComponent(std::move(gain), x, y), alpha_id_(alpha), bias_(std::move(bias)) {}

  void Bind(Program& program) override {
    NormComponent::Bind(program);
    bias_.Bind(program);
    alpha_ = program.Weights(alpha_id_);
    alpha_gradient_ = program.WeightGradient(alpha_id_);
  }

  void Forward() override {
    program_->kernels().dyt_forward(x_, alpha_, gain_.values(), bias_.values(), rows_, width_, y_);
  }

  void Backward() override {
    program_->kernels().dyt_backward(x_, alpha_, gain_.values(), y_gradient_, rows_, width_,
                                     x_gradient_.accumulate, x_gradient_.data, alpha_gradient_,
                                     gain_.gradient(), bias_.gradient());
  }

 private:
  const ParameterTable::Id alpha_id_;
  RowVector bias_;
  const float* alpha_ = nullptr;
  float* alpha_gradient_ = nullptr;
};

RowVector Gain(std::string_view path, bool learned, Value x) {
  return {x.program->parameters(), learned, std::string(path) + "/scale", x.width(), 1.0f};
}

RowVector Bias(std::string_view path, bool learned, Value x) {
  return {x.program->parameters(), learned, std::string(path) + "/bias", x.width(), 0.0f};
}

}  // namespace

Value LayerNorm(std::string_view path, double epsilon, Value x, bool gain) {
  RowVector scale = Gain(path, gain, x);
  RowVector bias = Bias(path, gain, x);
  const Value y = x.program->NewValue(x.rows(), x.width());
  Record<LayerNormComponent>(*x.program, std::move(scale), std::move(bias), epsilon, x, y);
  return y;
}

Value RmsNorm(std::string_view path, double epsilon, Value x, bool gain) {
  RowVector scale = Gain(path, gain, x);
  const Value y = x.program->NewValue(x.rows(), x.width());
  Record<RmsNormComponent>(*x.program, std::move(scale), epsilon, x, y);
  return y;
}

Value DyT(std::string_view path, double alpha, Value x, bool gain) {
  const auto alpha_id = x.program->parameters().Declare(
      std::string(path) + "/alpha", {1}, Initializer::Constant(static_cast<float>(alpha)));
  RowVector scale = Gain(path, gain, x);
  RowVector bias = Bias(path, gain, x);
  const Value y = x.program->NewValue(x.rows(), x.width());
  Record<DyTComponent>(*x.program, alpha_id, std::move(scale), std::move(bias), x, y);
  return y;
}

}  // namespace normlab::trainer
