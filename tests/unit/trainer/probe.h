// Test doubles that stand at the two ends of a part of a model: fixed values in, a fixed gradient
// back.
#ifndef NORMLAB_TESTS_UNIT_TRAINER_PROBE_H_
#define NORMLAB_TESTS_UNIT_TRAINER_PROBE_H_

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "server/trainer/model/program.h"

namespace normlab::trainer {

inline std::vector<float> RandomValues(int64_t count, uint32_t seed, float scale = 1.0f) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(engine);
  return values;
}

// Gives its value fixed numbers, and keeps the gradient that comes back.
class Source final : public Component {
 public:
  Source(std::vector<float> values, Value y, std::vector<float>* gradient)
      : values_(std::move(values)), y_(y), gradient_(gradient) {}

  void Bind(Program& program) override {
    data_ = program.Data(y_);
    incoming_ = program.GradientOf(y_);
  }
  void set_values(std::vector<float> values) { values_ = std::move(values); }
  void Forward() override { std::ranges::copy(values_, data_); }
  void Backward() override { gradient_->assign(incoming_, incoming_ + values_.size()); }

 private:
  std::vector<float> values_;
  const Value y_;
  std::vector<float>* const gradient_;
  float* data_ = nullptr;
  const float* incoming_ = nullptr;
};

// Ends a program: sends a fixed gradient back, as a loss sum(gradient * x) would.
class Sink final : public Component {
 public:
  Sink(std::vector<float> gradient, Value x) : gradient_(std::move(gradient)), x_(x) {}

  void Bind(Program& program) override { outgoing_ = program.AddGradient(x_); }
  void Forward() override {}
  void Backward() override {
    for (size_t i = 0; i < gradient_.size(); ++i) {
      outgoing_.data[i] = gradient_[i] + (outgoing_.accumulate ? outgoing_.data[i] : 0.0f);
    }
  }

 private:
  const std::vector<float> gradient_;
  const Value x_;
  GradientSlot outgoing_;
};

// One part of a model between a source and a sink, run forward and back once.
//
//   Probe probe(batch, time, width, [](Value x) { return Gelu(x); }, kernels);
//   probe.weights(0);  // change parameters here
//   probe.Run();
class Probe {
 public:
  template <typename Part>
  Probe(int64_t batch, int64_t time, int64_t width, const Part& part,
        const Kernels& kernels = BestKernels())
      : program_(parameters_, batch, time, kernels) {
    const Value x = program_.NewValue(width);
    input_ = RandomValues(program_.rows() * width, 1);
    auto source = std::make_unique<Source>(input_, x, &input_gradient_);
    source_ = source.get();
    program_.Append(std::move(source));
    output_value_ = part(x);
    output_gradient_ = RandomValues(program_.rows() * output_value_.width(), 2);
    Record<Sink>(program_, output_gradient_, output_value_);
    weights_ = Buffer(parameters_.buffer_size());
    gradients_ = Buffer(parameters_.buffer_size());
    program_.Finish(weights_.data(), gradients_.data());
    const std::vector<float> random = RandomValues(parameters_.buffer_size(), 3, 0.3f);
    std::ranges::copy(random, weights_.data());
  }

  void Run() {
    program_.Forward();
    program_.Backward();
    const float* data = program_.Data(output_value_);
    output_.assign(data, data + output_gradient_.size());
  }

  // Instead of the random input.
  void set_input(std::vector<float> input) {
    input_ = std::move(input);
    source_->set_values(input_);
  }

  ParameterTable& parameters() { return parameters_; }
  std::span<float> weights(ParameterTable::Id id) {
    return weights_.span().subspan(static_cast<size_t>(parameters_[id].offset),
                                   static_cast<size_t>(parameters_[id].count));
  }
  std::span<float> gradient(ParameterTable::Id id) {
    return gradients_.span().subspan(static_cast<size_t>(parameters_[id].offset),
                                     static_cast<size_t>(parameters_[id].count));
  }
  const std::vector<float>& input() const { return input_; }
  const std::vector<float>& output() const { return output_; }
  const std::vector<float>& input_gradient() const { return input_gradient_; }
  const std::vector<float>& output_gradient() const { return output_gradient_; }

 private:
  ParameterTable parameters_;
  Program program_;
  Source* source_ = nullptr;  // owned by the program
  Value output_value_;
  std::vector<float> input_;
  std::vector<float> output_;
  std::vector<float> input_gradient_;
  std::vector<float> output_gradient_;
  Buffer weights_;
  Buffer gradients_;
};

// The kernel sets this machine can run.
inline std::vector<const Kernels*> AvailableKernels() {
  std::vector<const Kernels*> sets;
  for (const char* name : {"baseline", "avx2", "avx512"}) {
    if (const Kernels* kernels = FindKernels(name)) sets.push_back(kernels);
  }
  return sets;
}

}  // namespace normlab::trainer

#endif  // NORMLAB_TESTS_UNIT_TRAINER_PROBE_H_
