#include "server/trainer/model/components/switch.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace normlab::trainer {
namespace {

// Where the rows of a batch go; shared by the parts of one layer.
struct Routing {
  std::vector<int64_t> expert;  // of each row
  std::vector<int64_t> slot;    // among the expert's inputs, or -1 without room
};

// p = softmax(logits), the routing and the balance loss.
class RouterComponent final : public Component {
 public:
  RouterComponent(const SwitchOptions& options, std::shared_ptr<Routing> routing, Value logits,
                  Value p)
      : options_(options), routing_(std::move(routing)), logits_value_(logits), p_value_(p) {}

  void Bind(Program& program) override {
    program_ = &program;
    rows_ = p_value_.rows();
    routing_->expert.resize(static_cast<size_t>(rows_));
    routing_->slot.resize(static_cast<size_t>(rows_));
    sent_.resize(static_cast<size_t>(options_.experts));
    row_gradient_.resize(sent_.size());
    logits_ = program.Data(logits_value_);
    p_ = program.Data(p_value_);
    p_gradient_ = program.GradientOf(p_value_);
    logits_gradient_ = program.AddGradient(logits_value_);
  }

  void Forward() override {
    const int64_t experts = options_.experts;
    std::ranges::fill(sent_, 0);
    for (int64_t row = 0; row < rows_; ++row) {
      float* p = p_ + row * experts;
      std::copy_n(logits_ + row * experts, experts, p);
      program_->kernels().softmax_of_row(1.0f, experts, p);
      const int64_t expert = std::max_element(p, p + experts) - p;
      const int64_t slot = sent_[static_cast<size_t>(expert)]++;
      routing_->expert[static_cast<size_t>(row)] = expert;
      routing_->slot[static_cast<size_t>(row)] = slot < options_.capacity ? slot : -1;
    }
    program_->AddBalanceLoss(BatchShare() * BalanceLoss());
  }

  void Backward() override {
    const int64_t experts = options_.experts;
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t e = 0; e < experts; ++e) {
        row_gradient_[static_cast<size_t>(e)] = p_gradient_[row * experts + e] + BalanceGradient(e);
      }
      program_->kernels().softmax_gradient_of_row(p_ + row * experts, 1.0f, experts,
                                                  row_gradient_.data());
      program_->kernels().copy(row_gradient_.data(), experts, logits_gradient_.accumulate,
                               logits_gradient_.data + row * experts);
    }
  }

 private:
  // Part of the rows sent to expert e.
  double Sent(int64_t e) const {
    return static_cast<double>(sent_[static_cast<size_t>(e)]) / static_cast<double>(rows_);
  }

  double BalanceLoss() const {
    double loss = 0;
    for (int64_t e = 0; e < options_.experts; ++e) {
      double sum = 0;
      for (int64_t row = 0; row < rows_; ++row) sum += p_[row * options_.experts + e];
      loss += Sent(e) * sum / static_cast<double>(rows_);
    }
    return static_cast<double>(options_.experts) * loss;
  }

  // Of the trained loss, by any p of expert e.
  float BalanceGradient(int64_t e) const {
    const double gradient = BatchShare() * options_.balance_coefficient *
                            static_cast<double>(options_.experts) * Sent(e) /
                            static_cast<double>(rows_);
    return static_cast<float>(gradient);
  }

  // The batch's part of a step of several batches, by the targets that count: their balance losses
  // are averaged as their cross-entropies are.
  double BatchShare() const {
    const auto counted = std::ranges::count_if(program_->inputs().targets,
                                               [](int32_t target) { return target != kIgnored; });
    return program_->loss_scale() * static_cast<double>(counted);
  }

  const SwitchOptions options_;
  const std::shared_ptr<Routing> routing_;
  const Value logits_value_;
  const Value p_value_;
  Program* program_ = nullptr;
  int64_t rows_ = 0;
  std::vector<int64_t> sent_;  // rows to each expert, with those that find no room
  std::vector<float> row_gradient_;
  const float* logits_ = nullptr;
  float* p_ = nullptr;
  const float* p_gradient_ = nullptr;
  GradientSlot logits_gradient_;
};

// Copies rows to their expert's inputs.
class DispatchComponent final : public Component {
 public:
  DispatchComponent(std::shared_ptr<const Routing> routing, Value x, std::vector<Value> inputs)
      : routing_(std::move(routing)), x_value_(x), input_values_(std::move(inputs)) {}

  void Bind(Program& program) override {
    program_ = &program;
    x_ = program.Data(x_value_);
    for (const Value input : input_values_) {
      inputs_.push_back(program.Data(input));
      gradients_.push_back(program.GradientOf(input));
    }
    x_gradient_ = program.AddGradient(x_value_);
  }

  void Forward() override {
    const int64_t width = x_value_.width();
    for (size_t e = 0; e < inputs_.size(); ++e) {
      std::fill_n(inputs_[e], input_values_[e].rows() * width, 0.0f);
    }
    for (int64_t row = 0; row < x_value_.rows(); ++row) {
      const auto [expert, slot] = Place(row);
      if (slot >= 0) std::copy_n(x_ + row * width, width, inputs_[expert] + slot * width);
    }
  }

  void Backward() override {
    const int64_t width = x_value_.width();
    for (int64_t row = 0; row < x_value_.rows(); ++row) {
      const auto [expert, slot] = Place(row);
      float* gradient = x_gradient_.data + row * width;
      if (slot >= 0) {
        program_->kernels().copy(gradients_[expert] + slot * width, width, x_gradient_.accumulate,
                                 gradient);
      } else if (!x_gradient_.accumulate) {
        std::fill_n(gradient, width, 0.0f);
      }
    }
  }

 private:
  std::pair<size_t, int64_t> Place(int64_t row) const {
    const auto index = static_cast<size_t>(row);
    return {static_cast<size_t>(routing_->expert[index]), routing_->slot[index]};
  }

  const std::shared_ptr<const Routing> routing_;
  const Value x_value_;
  const std::vector<Value> input_values_;
  Program* program_ = nullptr;
  const float* x_ = nullptr;
  std::vector<float*> inputs_;
  std::vector<const float*> gradients_;
  GradientSlot x_gradient_;
};

// y = p * (the expert's output, or x or 0 for a row without room).
class CombineComponent final : public Component {
 public:
  CombineComponent(bool pass, std::shared_ptr<const Routing> routing, Value p, Value x,
                   std::vector<Value> outputs, Value y)
      : pass_(pass),
        routing_(std::move(routing)),
        p_value_(p),
        x_value_(x),
        output_values_(std::move(outputs)),
        y_value_(y) {}

  void Bind(Program& program) override {
    program_ = &program;
    p_ = program.Data(p_value_);
    x_ = program.Data(x_value_);
    y_ = program.Data(y_value_);
    y_gradient_ = program.GradientOf(y_value_);
    for (const Value output : output_values_) {
      outputs_.push_back(program.Data(output));
      output_gradients_.push_back(program.AddGradient(output).data);
    }
    p_gradient_ = program.AddGradient(p_value_);
    if (pass_) x_gradient_ = program.AddGradient(x_value_);
  }

  void Forward() override {
    const int64_t width = y_value_.width();
    for (int64_t row = 0; row < y_value_.rows(); ++row) {
      const float p = p_[row * p_value_.width() + Expert(row)];
      const float* from = Result(row);
      for (int64_t c = 0; c < width; ++c) {
        y_[row * width + c] = from == nullptr ? 0.0f : p * from[c];
      }
    }
  }

  void Backward() override {
    const int64_t width = y_value_.width();
    for (size_t e = 0; e < outputs_.size(); ++e) {
      std::fill_n(output_gradients_[e], output_values_[e].rows() * width, 0.0f);
    }
    Clear(p_value_, p_gradient_);
    if (pass_) Clear(x_value_, x_gradient_);
    for (int64_t row = 0; row < y_value_.rows(); ++row) RowBackward(row);
  }

 private:
  int64_t Expert(int64_t row) const { return routing_->expert[static_cast<size_t>(row)]; }
  int64_t Slot(int64_t row) const { return routing_->slot[static_cast<size_t>(row)]; }

  // What is multiplied with p; null for 0.
  const float* Result(int64_t row) const {
    const int64_t width = y_value_.width();
    if (Slot(row) >= 0) return outputs_[static_cast<size_t>(Expert(row))] + Slot(row) * width;
    return pass_ ? x_ + row * width : nullptr;
  }

  static void Clear(Value value, const GradientSlot& slot) {
    if (!slot.accumulate) std::fill_n(slot.data, value.rows() * value.width(), 0.0f);
  }

  void RowBackward(int64_t row) {
    const float* result = Result(row);
    if (result == nullptr) return;
    const int64_t width = y_value_.width();
    const int64_t place = row * p_value_.width() + Expert(row);
    const float* dy = y_gradient_ + row * width;
    float* gradient = Slot(row) >= 0
                          ? output_gradients_[static_cast<size_t>(Expert(row))] + Slot(row) * width
                          : x_gradient_.data + row * width;
    float p_gradient = 0;
    for (int64_t c = 0; c < width; ++c) {
      gradient[c] += p_[place] * dy[c];
      p_gradient += result[c] * dy[c];
    }
    p_gradient_.data[place] += p_gradient;
  }

  const bool pass_;
  const std::shared_ptr<const Routing> routing_;
  const Value p_value_;
  const Value x_value_;
  const std::vector<Value> output_values_;
  const Value y_value_;
  Program* program_ = nullptr;
  const float* p_ = nullptr;
  const float* x_ = nullptr;
  float* y_ = nullptr;
  const float* y_gradient_ = nullptr;
  std::vector<const float*> outputs_;
  std::vector<float*> output_gradients_;
  GradientSlot p_gradient_;
  GradientSlot x_gradient_;
};

}  // namespace

int64_t SwitchCapacity(double factor, int64_t tokens, int64_t experts) {
  const double room = factor * static_cast<double>(tokens) / static_cast<double>(experts);
  return std::min(tokens, static_cast<int64_t>(std::floor(room)));
}

Value SwitchLayer(const SwitchOptions& options, Value logits, Value x,
                  const std::function<Value(int64_t expert, Value inputs)>& record_expert) {
  Program& program = *x.program;
  const auto routing = std::make_shared<Routing>();
  const Value p = program.NewValue(x.rows(), options.experts);
  Record<RouterComponent>(program, options, routing, logits, p);
  std::vector<Value> inputs;
  for (int64_t e = 0; e < options.experts; ++e) {
    inputs.push_back(program.NewValue(options.capacity, x.width()));
  }
  Record<DispatchComponent>(program, routing, x, inputs);
  std::vector<Value> outputs;
  for (int64_t e = 0; e < options.experts; ++e) {
    outputs.push_back(record_expert(e, inputs[static_cast<size_t>(e)]));
  }
  const Value y = program.NewValue(x.rows(), x.width());
  Record<CombineComponent>(program, options.pass, routing, p, x, outputs, y);
  return y;
}

}  // namespace normlab::trainer
