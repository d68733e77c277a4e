// Comparison of a part of a model with LibTorch's automatic differentiation in double precision.
#ifndef NORMLAB_TESTS_UNIT_TRAINER_AUTOGRAD_H_
#define NORMLAB_TESTS_UNIT_TRAINER_AUTOGRAD_H_

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/emulation/emulated_device.h"
#include "tests/unit/trainer/probe.h"

namespace normlab::trainer {

using Tensors = std::vector<torch::Tensor>;
// The same part of a model written with torch: x [batch, time, width] and the parameters in the
// order in which they were declared.
using Reference = std::function<torch::Tensor(const torch::Tensor& x, const Tensors& parameters)>;

inline torch::Tensor ToTensor(std::span<const float> values, std::vector<int64_t> shape) {
  auto* data = const_cast<float*>(values.data());
  return torch::from_blob(data, shape).to(torch::kFloat64).clone().set_requires_grad(true);
}

// Largest difference as a fraction of `scale`.
inline double RelativeError(std::span<const float> actual, const torch::Tensor& expected,
                            double scale) {
  const torch::Tensor ours =
      torch::from_blob(const_cast<float*>(actual.data()), expected.sizes()).to(torch::kFloat64);
  const double error = (ours - expected).abs().max().item<double>();
  return scale == 0 ? error : error / scale;
}

// Of the largest value of the reference.
inline double RelativeError(std::span<const float> actual, const torch::Tensor& expected) {
  return RelativeError(actual, expected, expected.abs().max().item<double>());
}

// `gain` and `bias` may be undefined.
inline torch::Tensor ReferenceNorm(const std::string& norm, const torch::Tensor& x,
                                   const torch::Tensor& gain, const torch::Tensor& bias,
                                   double epsilon) {
  if (norm == "layernorm") return torch::layer_norm(x, {x.size(-1)}, gain, bias, epsilon);
  const torch::Tensor normed = x * torch::rsqrt(x.square().mean(-1, true) + epsilon);
  return gain.defined() ? gain * normed : normed;
}

inline torch::Tensor ReferenceAttention(const torch::Tensor& qkv, int64_t heads, bool causal) {
  const int64_t batch = qkv.size(0);
  const int64_t time = qkv.size(1);
  const int64_t width = qkv.size(2) / 3;
  const auto split = [&](const torch::Tensor& t) {
    return t.reshape({batch, time, heads, width / heads}).transpose(1, 2);
  };
  const Tensors parts = qkv.chunk(3, -1);
  torch::Tensor scores = split(parts[0]).matmul(split(parts[1]).transpose(2, 3)) /
                         std::sqrt(static_cast<double>(width / heads));
  if (causal) {
    const torch::Tensor mask = torch::ones({time, time}, torch::kBool).triu(1);
    scores = scores.masked_fill(mask, -1e30);
  }
  return scores.softmax(-1).matmul(split(parts[2])).transpose(1, 2).reshape({batch, time, width});
}

inline void ExpectSameAsAutograd(Probe& probe, int64_t batch, int64_t time,
                                 const Reference& reference, double tolerance = 2e-6) {
  probe.Run();
  const int64_t width = static_cast<int64_t>(probe.input().size()) / (batch * time);
  const torch::Tensor x = ToTensor(probe.input(), {batch, time, width});
  Tensors parameters;
  for (size_t i = 0; i < probe.parameters().all().size(); ++i) {
    const auto id = static_cast<ParameterTable::Id>(i);
    parameters.push_back(ToTensor(probe.weights(id), probe.parameters()[id].shape));
  }
  const torch::Tensor y = reference(x, parameters);
  y.backward(ToTensor(probe.output_gradient(), y.sizes().vec()).detach());

  EXPECT_LT(RelativeError(probe.output(), y), tolerance) << "output";
  EXPECT_LT(RelativeError(probe.input_gradient(), x.grad()), tolerance) << "input gradient";
  double largest = 0;
  for (const torch::Tensor& p : parameters) {
    largest = std::max(largest, p.grad().abs().max().item<double>());
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto id = static_cast<ParameterTable::Id>(i);
    const torch::Tensor& expected = parameters[i].grad();
    // One number that adds up terms of both signs over the whole part has no scale of its own.
    const double scale = expected.numel() == 1 ? largest : expected.abs().max().item<double>();
    EXPECT_LT(RelativeError(probe.gradient(id), expected, scale), tolerance)
        << "gradient of " << probe.parameters()[id].path;
  }
}

struct Shape {
  int64_t batch;
  int64_t time;
  int64_t width;
  int64_t heads;
};

// The article's, the small preset's, and ones that fill no vector of any instruction set.
inline const Shape kShapes[] = {
    {2, 32, 64, 4}, {3, 16, 32, 4}, {2, 7, 20, 4}, {1, 1, 3, 1}, {2, 33, 34, 2}};

// The kernel sets of this machine, and those of a GPU.
inline std::vector<const Kernels*> AutogradKernels() {
  std::vector<const Kernels*> sets = AvailableKernels();
  sets.push_back(&EmulatedKernels());
  return sets;
}

}  // namespace normlab::trainer

#endif  // NORMLAB_TESTS_UNIT_TRAINER_AUTOGRAD_H_
