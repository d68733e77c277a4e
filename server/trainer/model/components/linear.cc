#include <optional>
#include <string>

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

}  // namespace

Value Linear(std::string_view path, int64_t out, Role role, bool bias, Value x) {
  ParameterTable& parameters = x.program->parameters();
  const std::string prefix(path);
  const auto kernel = parameters.Declare(prefix + "/kernel", {x.width(), out}, role);
  std::optional<ParameterTable::Id> bias_id;
  if (bias) bias_id = parameters.Declare(prefix + "/bias", {out}, Initializer::Bias(x.width()));
  const Value y = x.program->NewValue(x.rows(), out);
  Record<LinearComponent>(*x.program, kernel, false, bias_id, x, y);
  return y;
}

Value TiedHead(ParameterTable::Id embedding, Value x) {
  const int64_t vocab = x.program->parameters()[embedding].shape[0];
  const Value y = x.program->NewValue(x.rows(), vocab);
  Record<LinearComponent>(*x.program, embedding, true, std::nullopt, x, y);
  return y;
}

}  // namespace normlab::trainer
