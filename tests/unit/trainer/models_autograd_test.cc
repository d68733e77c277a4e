// The derivatives of what other models than the plain decoder are made of, against LibTorch's
// automatic ones in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "server/trainer/model/components/components.h"
#include "tests/unit/trainer/autograd.h"
#include "tests/unit/trainer/probe.h"

namespace normlab::trainer {
namespace {

struct Shape {
  int64_t batch;
  int64_t time;
  int64_t width;
  int64_t heads;
};

// Whole vectors, and ones that fill no vector of any instruction set. Heads have an even width.
const Shape kShapes[] = {{2, 16, 64, 4}, {3, 7, 20, 2}, {1, 1, 6, 3}, {2, 33, 34, 1}};

class ModelsAutogradTest : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() const { return *GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Sets, ModelsAutogradTest, testing::ValuesIn(AvailableKernels()),
                         [](const auto& set) { return std::string(set.param->instruction_set); });

torch::Tensor ReferenceActivation(const std::string& name, const torch::Tensor& x) {
  if (name == "relu") return torch::relu(x);
  if (name == "gelu") return torch::gelu(x);
  if (name == "gelu-tanh") return torch::gelu(x, "tanh");
  const Tensors halves = x.chunk(2, -1);
  return torch::silu(halves[0]) * halves[1];
}

TEST_P(ModelsAutogradTest, EveryActivation) {
  for (const std::string name : {"relu", "gelu", "gelu-tanh", "swiglu"}) {
    for (const Shape& s : kShapes) {
      SCOPED_TRACE(testing::Message() << name << " " << s.width);
      Probe probe(
          s.batch, s.time, s.width, [&](Value x) { return Activate(name, x); }, kernels());
      ExpectSameAsAutograd(probe, s.batch, s.time, [&](const torch::Tensor& x, const Tensors&) {
        return ReferenceActivation(name, x);
      });
    }
  }
}

TEST_P(ModelsAutogradTest, AnActivationsInputReadTwiceGetsBothGradients) {
  for (const std::string name : {"relu", "gelu", "swiglu"}) {
    const auto both = [&](Value x) { return Activate(name, x) + Activate(name, x + x); };
    Probe probe(2, 5, 12, both, kernels());
    ExpectSameAsAutograd(probe, 2, 5, [&](const torch::Tensor& x, const Tensors&) {
      return ReferenceActivation(name, x) + ReferenceActivation(name, x + x);
    });
  }
}

// Su et al. 2021, equation 34, over the positions of [batch, time, 2 pairs] as complex numbers.
torch::Tensor ReferenceTurn(const torch::Tensor& x) {
  const int64_t pairs = x.size(-1) / 2;
  const auto doubles = torch::TensorOptions().dtype(torch::kFloat64);
  const torch::Tensor frequency =
      torch::pow(10000.0, -torch::arange(pairs, doubles) / static_cast<double>(pairs));
  const torch::Tensor angle = torch::outer(torch::arange(x.size(1), doubles), frequency);
  const torch::Tensor z =
      torch::view_as_complex(x.reshape({x.size(0), x.size(1), pairs, 2}).contiguous());
  const torch::Tensor turned = z * torch::polar(torch::ones_like(angle), angle);
  return torch::view_as_real(turned).reshape(x.sizes());
}

TEST_P(ModelsAutogradTest, RotaryTurnsTheQueriesAndKeysOfEveryHead) {
  for (const Shape& s : kShapes) {
    Probe probe(
        s.batch, s.time, 3 * s.width, [&](Value x) { return Rotate(s.heads, x) + x; }, kernels());
    ExpectSameAsAutograd(probe, s.batch, s.time, [&](const torch::Tensor& x, const Tensors&) {
      Tensors heads = x.chunk(3 * s.heads, -1);
      for (int64_t h = 0; h < 2 * s.heads; ++h) {
        heads[static_cast<size_t>(h)] = ReferenceTurn(heads[static_cast<size_t>(h)]);
      }
      return torch::cat(heads, -1) + x;
    });
  }
}

TEST_P(ModelsAutogradTest, MeanOverAllPositionsAndOverThePast) {
  for (const bool causal : {true, false}) {
    for (const Shape& s : kShapes) {
      Probe probe(
          s.batch, s.time, s.width, [&](Value x) { return MeanOverVisible(causal, x) + x; },
          kernels());
      ExpectSameAsAutograd(probe, s.batch, s.time, [&](const torch::Tensor& x, const Tensors&) {
        torch::Tensor weights = torch::ones({s.time, s.time}, torch::kFloat64);
        if (causal) weights = weights.tril();
        return torch::matmul(weights / weights.sum(1, true), x) + x;
      });
    }
  }
}

}  // namespace
}  // namespace normlab::trainer
