#include "server/trainer/model/buffer.h"
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
    row_sum_ = program.NewBuffer(program.rows());
    row_target_ = program.NewBuffer(program.rows());
  }

  void Forward() override {
    const Kernels& kernels = program_->kernels();
    const StepInputs inputs = program_->step_inputs();
    kernels.softmax_forward(logits_, inputs.targets, program_->rows(), classes_, probabilities_,
                            row_sum_.data(), row_target_.data());
    kernels.sum_losses(row_sum_.data(), row_target_.data(), inputs.targets, program_->rows(),
                       inputs.loss_sum);
  }

  void Backward() override {
    const StepInputs inputs = program_->step_inputs();
    program_->kernels().softmax_backward(probabilities_, inputs.targets, program_->rows(), classes_,
                                         inputs.loss_scale, logits_gradient_.accumulate,
                                         logits_gradient_.data);
  }

 private:
  const Value logits_value_;
  const Value probabilities_value_;
  const int64_t classes_;
  Program* program_ = nullptr;
  const float* logits_ = nullptr;
  float* probabilities_ = nullptr;
  GradientSlot logits_gradient_;
  Buffer row_sum_;
  Buffer row_target_;
};

}  // namespace

void SoftmaxCrossEntropy(Value logits) {
  const Value probabilities = logits.program->NewValue(logits.width());
  Record<CrossEntropyComponent>(*logits.program, logits, probabilities);
}

}  // namespace normlab::trainer
