#include <string_view>

#include "server/trainer/model/buffer.h"
#include "server/trainer/model/components/components.h"

namespace normlab::trainer {
namespace {

// y = c x; dx = c dy.
class ConstantScaleComponent final : public Component {
 public:
  ConstantScaleComponent(float factor, Value x, Value y)
      : factor_(factor), x_value_(x), y_value_(y) {}

  void Bind(Program& program) override {
    kernels_ = &program.kernels();
    count_ = x_value_.rows() * x_value_.width();
    x_ = program.Data(x_value_);
    y_ = program.Data(y_value_);
    y_gradient_ = program.GradientOf(y_value_);
    x_gradient_ = program.AddGradient(x_value_);
  }

  void Forward() override { kernels_->scale(x_, factor_, count_, false, y_); }

  void Backward() override {
    kernels_->scale(y_gradient_, factor_, count_, x_gradient_.accumulate, x_gradient_.data);
  }

 private:
  const float factor_;
  const Value x_value_;
  const Value y_value_;
  const Kernels* kernels_ = nullptr;
  int64_t count_ = 0;
  const float* x_ = nullptr;
  float* y_ = nullptr;
  const float* y_gradient_ = nullptr;
  GradientSlot x_gradient_;
};

// y = s x with one learned scale for each group of columns; dx = s dy, ds += sum of x dy over the
// rows and the group.
class LearnedScaleComponent final : public Component {
 public:
  LearnedScaleComponent(ParameterTable::Id scales, int64_t groups, Value x, Value y)
      : scales_id_(scales), groups_(groups), width_(x.width()), x_value_(x), y_value_(y) {}

  void Bind(Program& program) override {
    kernels_ = &program.kernels();
    rows_ = x_value_.rows();
    x_ = program.Data(x_value_);
    y_ = program.Data(y_value_);
    y_gradient_ = program.GradientOf(y_value_);
    x_gradient_ = program.AddGradient(x_value_);
    scales_ = program.Weights(scales_id_);
    scale_gradients_ = program.WeightGradient(scales_id_);
    columns_ = program.NewBuffer(width_);
  }

  void Forward() override {
    SpreadScales();
    kernels_->scale_columns(x_, columns_.data(), rows_, width_, false, y_);
  }

  void Backward() override {
    SpreadScales();
    kernels_->scale_columns(y_gradient_, columns_.data(), rows_, width_, x_gradient_.accumulate,
                            x_gradient_.data);
    kernels_->fill_rows(nullptr, 1, width_, columns_.data());
    kernels_->add_column_products(x_, y_gradient_, rows_, width_, columns_.data());
    kernels_->add_group_sums(columns_.data(), groups_, width_, scale_gradients_);
  }

 private:
  void SpreadScales() { kernels_->spread(scales_, groups_, width_, columns_.data()); }

  const ParameterTable::Id scales_id_;
  const int64_t groups_;
  const int64_t width_;
  const Value x_value_;
  const Value y_value_;
  const Kernels* kernels_ = nullptr;
  int64_t rows_ = 0;
  const float* x_ = nullptr;
  float* y_ = nullptr;
  const float* y_gradient_ = nullptr;
  GradientSlot x_gradient_;
  const float* scales_ = nullptr;
  float* scale_gradients_ = nullptr;
  Buffer columns_;  // one number a column: the scales, or sums on the way back
};

}  // namespace

Value operator*(double factor, Value x) {
  const Value y = x.program->NewValue(x.rows(), x.width());
  Record<ConstantScaleComponent>(*x.program, static_cast<float>(factor), x, y);
  return y;
}

Value LearnedScale(std::string_view path, int64_t groups, double initial, Value x) {
  const auto scales = x.program->parameters().Declare(
      path, {groups}, Initializer::Constant(static_cast<float>(initial)));
  const Value y = x.program->NewValue(x.rows(), x.width());
  Record<LearnedScaleComponent>(*x.program, scales, groups, x, y);
  return y;
}

}  // namespace normlab::trainer
