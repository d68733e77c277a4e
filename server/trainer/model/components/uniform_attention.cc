#include <vector>

#include "server/trainer/model/components/components.h"

namespace normlab::trainer {
namespace {

// y_t = mean of x_j over the visible j. With running sums both ways cost one pass: causal, dx_j is
// the sum over t >= j of dy_t / (t + 1).
class MeanComponent final : public Component {
 public:
  MeanComponent(bool causal, Value x, Value y)
      : causal_(causal), width_(x.width()), x_value_(x), y_value_(y) {}

  void Bind(Program& program) override {
    program_ = &program;
    sums_.resize(static_cast<size_t>(width_));
    x_ = program.Data(x_value_);
    y_ = program.Data(y_value_);
    y_gradient_ = program.GradientOf(y_value_);
    x_gradient_ = program.AddGradient(x_value_);
  }

  void Forward() override {
    const int64_t time = program_->time();
    for (int64_t b = 0; b < program_->batch(); ++b) {
      const int64_t first = b * time * width_;
      Clear();
      if (!causal_) AddRows(x_ + first);
      for (int64_t t = 0; t < time; ++t) {
        if (causal_) AddRow(x_ + first + t * width_, 1.0f);
        const float share = 1.0f / static_cast<float>(causal_ ? t + 1 : time);
        float* y = y_ + first + t * width_;
        for (int64_t c = 0; c < width_; ++c) y[c] = sums_[static_cast<size_t>(c)] * share;
      }
    }
  }

  void Backward() override {
    const int64_t time = program_->time();
    for (int64_t b = 0; b < program_->batch(); ++b) {
      const int64_t first = b * time * width_;
      Clear();
      if (!causal_) AddRows(y_gradient_ + first);
      for (int64_t t = time - 1; t >= 0; --t) {
        const float share = 1.0f / static_cast<float>(causal_ ? t + 1 : time);
        if (causal_) AddRow(y_gradient_ + first + t * width_, share);
        float* dx = x_gradient_.data + first + t * width_;
        for (int64_t c = 0; c < width_; ++c) {
          const float gradient = sums_[static_cast<size_t>(c)] * (causal_ ? 1.0f : share);
          dx[c] = x_gradient_.accumulate ? dx[c] + gradient : gradient;
        }
      }
    }
  }

 private:
  void Clear() { sums_.assign(sums_.size(), 0.0f); }

  void AddRow(const float* row, float factor) {
    for (int64_t c = 0; c < width_; ++c) sums_[static_cast<size_t>(c)] += row[c] * factor;
  }

  void AddRows(const float* rows) {
    for (int64_t t = 0; t < program_->time(); ++t) AddRow(rows + t * width_, 1.0f);
  }

  const bool causal_;
  const int64_t width_;
  const Value x_value_;
  const Value y_value_;
  Program* program_ = nullptr;
  std::vector<float> sums_;  // of the columns
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
