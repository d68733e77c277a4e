#include "server/trainer/model/buffer.h"
#include "server/trainer/model/components/components.h"

namespace normlab::trainer {
namespace {

// The probabilities are kept for the way back.
class AttentionComponent final : public Component {
 public:
  AttentionComponent(int64_t heads, bool causal, Value qkv, Value y)
      : heads_(heads), causal_(causal), width_(y.width()), qkv_value_(qkv), y_value_(y) {}

  void Bind(Program& program) override {
    program_ = &program;
    const int64_t probability_size = heads_ * program.time() * AttentionStride(program.time());
    probabilities_ = program.NewBuffer(program.batch() * probability_size);
    scratch_ = program.NewBuffer(
        program.kernels().attention_scratch(program.batch(), program.time(), width_, heads_));
    qkv_ = program.Data(qkv_value_);
    y_ = program.Data(y_value_);
    y_gradient_ = program.GradientOf(y_value_);
    qkv_gradient_ = program.AddGradient(qkv_value_);
  }

  void Forward() override {
    program_->kernels().attention_forward(qkv_, program_->batch(), program_->time(), width_, heads_,
                                          causal_, probabilities_.data(), y_, scratch_.data());
  }

  void Backward() override {
    program_->kernels().attention_backward(
        qkv_, probabilities_.data(), y_gradient_, program_->batch(), program_->time(), width_,
        heads_, causal_, qkv_gradient_.accumulate, qkv_gradient_.data, scratch_.data());
  }

 private:
  const int64_t heads_;
  const bool causal_;
  const int64_t width_;
  const Value qkv_value_;
  const Value y_value_;
  Program* program_ = nullptr;
  Buffer probabilities_;
  Buffer scratch_;
  const float* qkv_ = nullptr;
  float* y_ = nullptr;
  const float* y_gradient_ = nullptr;
  GradientSlot qkv_gradient_;
};

}  // namespace

Value AttendHeads(int64_t heads, bool causal, Value qkv) {
  const Value y = qkv.program->NewValue(qkv.width() / 3);
  Record<AttentionComponent>(*qkv.program, heads, causal, qkv, y);
  return y;
}

}  // namespace normlab::trainer
