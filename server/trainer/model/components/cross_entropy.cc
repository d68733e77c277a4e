#include <cmath>
#include <vector>

#include "server/trainer/model/components/components.h"

namespace normlab::trainer {
namespace {

// loss = loss_scale * sum over counted rows of (log sum_c exp(x_c) - x_target).
class CrossEntropyComponent final : public Component {
 public:
  CrossEntropyComponent(Value logits, Value probabilities)
      : logits_value_(logits), probabilities_value_(probabilities), classes_(logits.width()) {}

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
      if (program_->targets()[row] == kIgnored) continue;
      loss += std::log(static_cast<double>(row_sum_[row])) - row_target_[row];
    }
    program_->set_loss(loss * program_->loss_scale());
  }

  void Backward() override {
    program_->kernels().softmax_backward(probabilities_, program_->targets().data(),
                                         program_->rows(), classes_,
                                         static_cast<float>(program_->loss_scale()),
                                         logits_gradient_.accumulate, logits_gradient_.data);
  }

 private:
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

void SoftmaxCrossEntropy(Value logits) {
  const Value probabilities = logits.program->NewValue(logits.width());
  Record<CrossEntropyComponent>(*logits.program, logits, probabilities);
}

}  // namespace normlab::trainer
