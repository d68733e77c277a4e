#include <optional>
#include <string>

#include "server/trainer/model/buffer.h"
#include "server/trainer/model/components/components.h"
#include "server/trainer/model/matrix_product.h"

namespace normlab::trainer {
namespace {

// y = x W + b; dx = dy W^T, dW += x^T dy, db += column sums of dy. With `transposed` the parameter
// is W^T, and its gradient dy^T x.
class LinearComponent final : public Component {
 public:
  LinearComponent(ParameterTable::Id kernel, bool transposed,
                  std::optional<ParameterTable::Id> bias, Value x, Value y)
      : kernel_(kernel), transposed_(transposed), bias_(bias), x_(x), y_(y) {}

  void Bind(Program& program) override {
    program_ = &program;
    const int64_t rows = x_.rows();
    const int64_t in = x_.width();
    const int64_t out = y_.width();
    const Matrix x{program.Data(x_), rows, in};
    const Matrix weights = transposed_ ? Matrix{program.Weights(kernel_), out, in}.Transposed()
                                       : Matrix{program.Weights(kernel_), in, out};
    const Matrix y_gradient{program.GradientOf(y_), rows, out};
    const GradientSlot x_gradient = program.AddGradient(x_);
    const float* bias = bias_ ? program.Weights(*bias_) : nullptr;
    const Kernels& kernels = program.kernels();
    y_gradient_ = y_gradient.data;
    forward_.emplace(x, weights, ProductStart{.bias = bias}, program.Data(y_), kernels);
    input_gradient_.emplace(y_gradient, weights.Transposed(),
                            ProductStart{.accumulate = x_gradient.accumulate}, x_gradient.data,
                            kernels);
    weight_gradient_.emplace(transposed_ ? y_gradient.Transposed() : x.Transposed(),
                             transposed_ ? x : y_gradient, ProductStart{.accumulate = true},
                             program.WeightGradient(kernel_), kernels);
  }

  void Forward() override { forward_->Run(); }

  void Backward() override {
    input_gradient_->Run();
    weight_gradient_->Run();
    if (bias_) {
      program_->kernels().add_column_sums(y_gradient_, y_.rows(), y_.width(),
                                          program_->WeightGradient(*bias_));
    }
  }

 private:
  const ParameterTable::Id kernel_;
  const bool transposed_;
  const std::optional<ParameterTable::Id> bias_;
  const Value x_;
  const Value y_;
  Program* program_ = nullptr;
  const float* y_gradient_ = nullptr;
  std::optional<MatrixProduct> forward_;
  std::optional<MatrixProduct> input_gradient_;
  std::optional<MatrixProduct> weight_gradient_;
};

// The same in a bf16 run: with r() rounding to bfloat16, y = r(r(x) r(W) + r(b)) and the gradients
// dx = r(r(dy) r(W)^T), dW += r(x)^T r(dy), db += column sums of r(dy).
class RoundedLinearComponent final : public Component {
 public:
  RoundedLinearComponent(ParameterTable::Id kernel, bool transposed,
                         std::optional<ParameterTable::Id> bias, Value x, Value y)
      : kernel_(kernel), transposed_(transposed), bias_(bias), x_(x), y_(y) {}

  void Bind(Program& program) override {
    program_ = &program;
    const int64_t rows = x_.rows();
    const int64_t in = x_.width();
    const int64_t out = y_.width();
    rounded_x_ = Buffer(rows * in);
    rounded_weights_ = Buffer(in * out);
    rounded_bias_ = Buffer(out);
    rounded_gradient_ = Buffer(rows * out);
    x_product_ = Buffer(rows * in);
    x_data_ = program.Data(x_);
    y_data_ = program.Data(y_);
    y_gradient_ = program.GradientOf(y_);
    x_gradient_ = program.AddGradient(x_);
    const Matrix x{rounded_x_.data(), rows, in};
    const Matrix weights = transposed_ ? Matrix{rounded_weights_.data(), out, in}.Transposed()
                                       : Matrix{rounded_weights_.data(), in, out};
    const Matrix gradient{rounded_gradient_.data(), rows, out};
    const Kernels& kernels = program.kernels();
    forward_.emplace(x, weights, ProductStart{.bias = bias_ ? rounded_bias_.data() : nullptr},
                     y_data_, kernels);
    input_gradient_.emplace(gradient, weights.Transposed(), ProductStart{}, x_product_.data(),
                            kernels);
    weight_gradient_.emplace(transposed_ ? gradient.Transposed() : x.Transposed(),
                             transposed_ ? x : gradient, ProductStart{.accumulate = true},
                             program.WeightGradient(kernel_), kernels);
  }

  void Forward() override {
    Round(x_data_, rounded_x_);
    Round(program_->Weights(kernel_), rounded_weights_);
    if (bias_) Round(program_->Weights(*bias_), rounded_bias_);
    forward_->Run();
    program_->RoundProduct(y_data_, y_.rows() * y_.width());
  }

  void Backward() override {
    Round(y_gradient_, rounded_gradient_);
    input_gradient_->Run();
    const int64_t count = x_.rows() * x_.width();
    program_->RoundProduct(x_product_.data(), count);
    program_->kernels().copy(x_product_.data(), count, x_gradient_.accumulate, x_gradient_.data);
    weight_gradient_->Run();
    if (bias_) {
      program_->kernels().add_column_sums(rounded_gradient_.data(), y_.rows(), y_.width(),
                                          program_->WeightGradient(*bias_));
    }
  }

 private:
  void Round(const float* from, Buffer& to) const {
    program_->kernels().round_to_bfloat16(from, static_cast<long>(to.span().size()), to.data());
  }

  const ParameterTable::Id kernel_;
  const bool transposed_;
  const std::optional<ParameterTable::Id> bias_;
  const Value x_;
  const Value y_;
  Program* program_ = nullptr;
  Buffer rounded_x_;
  Buffer rounded_weights_;
  Buffer rounded_bias_;
  Buffer rounded_gradient_;
  Buffer x_product_;
  const float* x_data_ = nullptr;
  float* y_data_ = nullptr;
  const float* y_gradient_ = nullptr;
  GradientSlot x_gradient_;
  std::optional<MatrixProduct> forward_;
  std::optional<MatrixProduct> input_gradient_;
  std::optional<MatrixProduct> weight_gradient_;
};

void RecordLinear(Precision precision, ParameterTable::Id kernel, bool transposed,
                  std::optional<ParameterTable::Id> bias, Value x, Value y) {
  Program& program = *x.program;
  if (precision == Precision::kBf16) {
    Record<RoundedLinearComponent>(program, kernel, transposed, bias, x, y);
  } else {
    Record<LinearComponent>(program, kernel, transposed, bias, x, y);
  }
}

}  // namespace

Value Linear(std::string_view path, int64_t out, Role role, bool bias, Value x,
             std::optional<Precision> precision) {
  ParameterTable& parameters = x.program->parameters();
  const std::string prefix(path);
  const auto kernel = parameters.Declare(prefix + "/kernel", {x.width(), out}, role);
  std::optional<ParameterTable::Id> bias_id;
  if (bias) bias_id = parameters.Declare(prefix + "/bias", {out}, Initializer::Bias(x.width()));
  const Value y = x.program->NewValue(x.rows(), out);
  RecordLinear(precision.value_or(x.program->precision()), kernel, false, bias_id, x, y);
  return y;
}

Value TiedHead(ParameterTable::Id embedding, Value x) {
  const int64_t vocab = x.program->parameters()[embedding].shape[0];
  const Value y = x.program->NewValue(x.rows(), vocab);
  RecordLinear(x.program->precision(), embedding, true, std::nullopt, x, y);
  return y;
}

}  // namespace normlab::trainer
