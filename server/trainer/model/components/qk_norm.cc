#include <array>
#include <string>
#include <utility>
#include <vector>

#include "server/trainer/model/components/components.h"
#include "server/trainer/model/components/row_vector.h"

namespace normlab::trainer {
namespace {

// q, k and v side by side in each row; the first gains.size() of them are normed, each as `groups`
// rows of its own, the others are passed on.
class QueryKeyNormComponent final : public Component {
 public:
  QueryKeyNormComponent(std::vector<RowVector> gains, int64_t groups, double epsilon, Value qkv,
                        Value y)
      : gains_(std::move(gains)),
        groups_(groups),
        epsilon_(static_cast<float>(epsilon)),
        width_(qkv.width() / 3),
        qkv_value_(qkv),
        y_value_(y) {}

  void Bind(Program& program) override {
    kernels_ = &program.kernels();
    rows_ = qkv_value_.rows();
    qkv_ = program.Data(qkv_value_);
    y_ = program.Data(y_value_);
    y_gradient_ = program.GradientOf(y_value_);
    qkv_gradient_ = program.AddGradient(qkv_value_);
    for (RowVector& gain : gains_) gain.Bind(program);
    inverse_.resize(static_cast<size_t>(rows_ * 3 * groups_));
  }

  void Forward() override {
    for (int64_t part = 0; part < rows_ * 3; ++part) {
      const float* x = qkv_ + part * width_;
      float* y = y_ + part * width_;
      if (const RowVector* gain = GainOf(part)) {
        kernels_->rms_norm_forward(x, gain->values(), epsilon_, groups_, gain->width(), y,
                                   InverseOf(part));
      } else {
        kernels_->copy(x, width_, false, y);
      }
    }
  }

  void Backward() override {
    const bool accumulate = qkv_gradient_.accumulate;
    for (int64_t part = 0; part < rows_ * 3; ++part) {
      const float* dy = y_gradient_ + part * width_;
      float* dx = qkv_gradient_.data + part * width_;
      if (const RowVector* gain = GainOf(part)) {
        kernels_->rms_norm_backward(qkv_ + part * width_, gain->values(), InverseOf(part), dy,
                                    groups_, gain->width(), accumulate, dx, gain->gradient());
      } else {
        kernels_->copy(dy, width_, accumulate, dx);
      }
    }
  }

 private:
  // Parts 0, 1 and 2 are the first row's q, k and v, and so on. Null for one that is passed on.
  const RowVector* GainOf(int64_t part) const {
    const auto which = static_cast<size_t>(part % 3);
    return which < gains_.size() ? &gains_[which] : nullptr;
  }
  float* InverseOf(int64_t part) { return inverse_.data() + part * groups_; }

  std::vector<RowVector> gains_;
  const int64_t groups_;
  const float epsilon_;
  const int64_t width_;
  const Value qkv_value_;
  const Value y_value_;
  const Kernels* kernels_ = nullptr;
  int64_t rows_ = 0;
  const float* qkv_ = nullptr;
  float* y_ = nullptr;
  const float* y_gradient_ = nullptr;
  GradientSlot qkv_gradient_;
  std::vector<float> inverse_;  // 1 / root mean square of each group of each part
};

}  // namespace

Value QueryKeyNorm(std::string_view path, const QueryKeyNormOptions& options, Value qkv) {
  const int64_t group_width = qkv.width() / 3 / options.groups;
  std::vector<RowVector> gains;
  for (const char* name : {"q_norm", "k_norm", "v_norm"}) {
    if (gains.size() == 2 && !options.values) break;
    gains.emplace_back(qkv.program->parameters(), options.gain, std::string(path) + name + "/scale",
                       group_width, 1.0f);
  }
  const Value y = qkv.program->NewValue(qkv.rows(), qkv.width());
  Record<QueryKeyNormComponent>(*qkv.program, std::move(gains), options.groups, options.epsilon,
                                qkv, y);
  return y;
}

}  // namespace normlab::trainer
