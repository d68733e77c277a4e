#include <cmath>
#include <vector>

#include "server/trainer/model/components/components.h"

namespace normlab::trainer {
namespace {

// loss = sum over rows of (log sum_c exp(x_c) - x_target) / total_rows.
class CrossEntropyComponent final : public Component {
 public:
  CrossEntropyComponent(int64_t total_rows, Value logits, Value probabilities)
      : scale_(1.0 / static_cast<double>(total_rows)),
        logits_value_(logits),
        probabilities_value_(probabilities),
        classes_(logits.width()) {}

  void Bind(Program& program) override {
    program_ = &program;
    logits_ = program.Data(logits_value_);
    probabilities_ = program.Data(probabilities_value_);
    logits_gradient_ = program.AddGradient(logits_value_);
    row_sum_.resize(static_cast<size_t>(program.rows()));
    row_target_.resize(static_cast<size_t>(program.rows()));
  }

  void Forward() override {
    program_->kernels().softmax_forward(logits_, program_->targets().data(), program_->rows(),
                                        classes_, probabilities_, row_sum_.data(),
                                        row_target_.data());
    double loss = 0;
    for (size_t row = 0; row < row_sum_.size(); ++row) {
      loss += std::log(static_cast<double>(row_sum_[row])) - row_target_[row];
    }
    program_->set_loss(loss * scale_);
  }

  void Backward() override {
    program_->kernels().softmax_backward(probabilities_, program_->targets().data(),
                                         program_->rows(), classes_, static_cast<float>(scale_),
                                         logits_gradient_.accumulate, logits_gradient_.data);
  }

 private:
  const double scale_;
  const Value logits_value_;
  const Value probabilities_value_;
  const int64_t classes_;
  Program* program_ = nullptr;
  const float* logits_ = nullptr;
  float* probabilities_ = nullptr;
  GradientSlot logits_gradient_;
  std::vector<float> row_sum_;
  std::vector<float> row_target_;
};

}  // namespace

void SoftmaxCrossEntropy(int64_t total_rows, Value logits) {
  const Value probabilities = logits.program->NewValue(logits.width());
  Record<CrossEntropyComponent>(*logits.program, total_rows, logits, probabilities);
}

}  // namespace normlab::trainer
