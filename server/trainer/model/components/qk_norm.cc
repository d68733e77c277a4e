#include <array>
#include <string>
#include <utility>
#include <vector>

#include "server/trainer/model/buffer.h"
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
    inverse_ = program.NewBuffer(static_cast<int64_t>(gains_.size()) * rows_ * groups_);
  }

  void Forward() override {
    for (size_t i = 0; i < 3; ++i) {  // q, k, v
      const int64_t first = static_cast<int64_t>(i) * width_;
      if (i < gains_.size()) {
        kernels_->rms_norm_groups_forward(qkv_ + first, gains_[i].values(), epsilon_, rows_,
                                          3 * width_, groups_, gains_[i].width(), y_ + first,
                                          InverseOf(i));
      } else {
        kernels_->copy_columns(qkv_ + first, rows_, 3 * width_, width_, false, y_ + first);
      }
    }
  }

  void Backward() override {
    const bool accumulate = qkv_gradient_.accumulate;
    for (size_t i = 0; i < 3; ++i) {
      const int64_t first = static_cast<int64_t>(i) * width_;
      float* dx = qkv_gradient_.data + first;
      if (i < gains_.size()) {
        kernels_->rms_norm_groups_backward(qkv_ + first, gains_[i].values(), InverseOf(i),
                                           y_gradient_ + first, rows_, 3 * width_, groups_,
                                           gains_[i].width(), accumulate, dx, gains_[i].gradient());
      } else {
        kernels_->copy_columns(y_gradient_ + first, rows_, 3 * width_, width_, accumulate, dx);
      }
    }
  }

 private:
  float* InverseOf(size_t part) {
    return inverse_.data() + static_cast<int64_t>(part) * rows_ * groups_;
  }

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
  Buffer inverse_;  // 1 / root mean square: [normed parts, rows, groups]
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
