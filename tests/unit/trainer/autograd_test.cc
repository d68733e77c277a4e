// Every hand-written derivative against LibTorch's automatic ones, in double precision.
#include "tests/unit/trainer/autograd.h"

#include <string>
#include <vector>

#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"
#include "server/trainer/train/learner.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {
namespace {

class AutogradTest : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() const { return *GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Sets, AutogradTest, testing::ValuesIn(AutogradKernels()),
                         [](const auto& set) { return std::string(set.param->instruction_set); });

TEST_P(AutogradTest, LayerNorm) {
  for (const Shape& s : kShapes) {
    Probe probe(
        s.batch, s.time, s.width, [](Value x) { return LayerNorm("n", 1e-3, x); }, kernels());
    ExpectSameAsAutograd(probe, s.batch, s.time, [](const torch::Tensor& x, const Tensors& p) {
      return ReferenceNorm("layernorm", x, p[0], p[1], 1e-3);
    });
  }
}

TEST_P(AutogradTest, RmsNorm) {
  for (const Shape& s : kShapes) {
    Probe probe(
        s.batch, s.time, s.width, [](Value x) { return RmsNorm("n", 1e-3, x); }, kernels());
    ExpectSameAsAutograd(probe, s.batch, s.time, [](const torch::Tensor& x, const Tensors& p) {
      return ReferenceNorm("rmsnorm", x, p[0], {}, 1e-3);
    });
  }
}

TEST_P(AutogradTest, LinearWithAndWithoutBias) {
  for (const bool bias : {true, false}) {
    for (const Shape& s : kShapes) {
      Probe probe(
          s.batch, s.time, s.width,
          [&](Value x) { return Linear("l", 2 * s.width + 1, {}, bias, x); }, kernels());
      ExpectSameAsAutograd(probe, s.batch, s.time, [&](const torch::Tensor& x, const Tensors& p) {
        const torch::Tensor y = x.matmul(p[0]);
        return bias ? y + p[1] : y;
      });
    }
  }
}

TEST_P(AutogradTest, Gelu) {
  for (const Shape& s : kShapes) {
    Probe probe(
        s.batch, s.time, s.width, [](Value x) { return Gelu(x); }, kernels());
    ExpectSameAsAutograd(probe, s.batch, s.time, [](const torch::Tensor& x, const Tensors&) {
      return torch::gelu(x, "tanh");
    });
  }
}

TEST_P(AutogradTest, CausalAndFullAttention) {
  for (const bool causal : {true, false}) {
    for (const Shape& s : kShapes) {
      SCOPED_TRACE(testing::Message() << s.time << "x" << s.width << " causal " << causal);
      Probe probe(
          s.batch, s.time, 3 * s.width, [&](Value x) { return AttendHeads(s.heads, causal, x); },
          kernels());
      ExpectSameAsAutograd(probe, s.batch, s.time, [&](const torch::Tensor& x, const Tensors&) {
        return ReferenceAttention(x, s.heads, causal);
      });
    }
  }
}

TEST_P(AutogradTest, AValueReadTwiceGetsBothGradients) {
  Probe probe(
      2, 5, 12, [](Value x) { return Gelu(x) + (x + Gelu(x + x)); }, kernels());
  ExpectSameAsAutograd(probe, 2, 5, [](const torch::Tensor& x, const Tensors&) {
    return torch::gelu(x, "tanh") + (x + torch::gelu(x + x, "tanh"));
  });
}

// Parameters in the order in which a block's parts declare them.
torch::Tensor ReferenceBranchAttention(const torch::Tensor& x, const Tensors& p, size_t first,
                                       int64_t heads) {
  const torch::Tensor qkv = x.matmul(p[first]) + p[first + 1];
  return ReferenceAttention(qkv, heads, true).matmul(p[first + 2]) + p[first + 3];
}

torch::Tensor ReferenceBranchFeedForward(const torch::Tensor& x, const Tensors& p, size_t first) {
  const torch::Tensor hidden = torch::gelu(x.matmul(p[first]) + p[first + 1], "tanh");
  return hidden.matmul(p[first + 2]) + p[first + 3];
}

// What torch.nn.TransformerEncoderLayer(norm_first=True) computes without dropout.
torch::Tensor ReferencePre(const torch::Tensor& x, const Tensors& p, double epsilon) {
  const torch::Tensor u =
      x + ReferenceBranchAttention(ReferenceNorm("layernorm", x, p[0], p[1], epsilon), p, 2, 4);
  return u + ReferenceBranchFeedForward(ReferenceNorm("layernorm", u, p[6], p[7], epsilon), p, 8);
}

// The same with norm_first=False.
torch::Tensor ReferencePost(const torch::Tensor& x, const Tensors& p, double epsilon) {
  const torch::Tensor u =
      ReferenceNorm("layernorm", x + ReferenceBranchAttention(x, p, 0, 4), p[4], p[5], epsilon);
  return ReferenceNorm("layernorm", u + ReferenceBranchFeedForward(u, p, 6), p[10], p[11], epsilon);
}

TEST_P(AutogradTest, PreAndPostBlocksEqualPyTorchsEncoderLayer) {
  for (const bool pre : {true, false}) {
    SCOPED_TRACE(pre ? "pre" : "post");
    TrainingSettings settings;
    settings.norm_epsilon = 1e-5;  // PyTorch's
    const Placement& placement = FindPlacement(pre ? "pre" : "post");
    Probe probe(
        2, 32, 64, [&](Value x) { return placement.RecordBlock(Block(settings, 0), x); },
        kernels());
    ExpectSameAsAutograd(
        probe, 2, 32,
        [&](const torch::Tensor& x, const Tensors& p) {
          return pre ? ReferencePre(x, p, 1e-5) : ReferencePost(x, p, 1e-5);
        },
        5e-6);
  }
}

// The whole decoder of `settings`, written with torch; returns the mean cross-entropy.
torch::Tensor ReferenceLoss(const TrainingSettings& s, const Tensors& p,
                            const torch::Tensor& tokens, const torch::Tensor& targets) {
  const size_t norm_size = s.norm == "layernorm" ? 2 : 1;
  size_t next = 0;
  const auto norm = [&](const torch::Tensor& x) {
    const torch::Tensor bias = norm_size == 2 ? p[next + 1] : torch::Tensor();
    const torch::Tensor y = ReferenceNorm(s.norm, x, p[next], bias, s.norm_epsilon);
    next += norm_size;
    return y;
  };
  const auto attention = [&](const torch::Tensor& x) {
    next += 4;
    return ReferenceBranchAttention(x, p, next - 4, s.heads);
  };
  const auto feed_forward = [&](const torch::Tensor& x) {
    next += 4;
    return ReferenceBranchFeedForward(x, p, next - 4);
  };
  torch::Tensor x =
      p[0].index_select(0, tokens.flatten()).reshape({tokens.size(0), tokens.size(1), s.d_model}) +
      p[1];
  next = 2;
  for (int64_t i = 0; i < s.layers; ++i) {
    if (s.placement == "pre") {
      x = x + attention(norm(x));
      x = x + feed_forward(norm(x));
    } else {
      x = norm(x + attention(x));
      x = norm(x + feed_forward(x));
    }
  }
  if (s.final_norm) x = norm(x);
  const torch::Tensor logits = x.matmul(p[next]);
  return torch::cross_entropy_loss(logits.flatten(0, 1), targets.flatten());
}

struct ModelCase {
  const char* placement;
  const char* norm;
  bool final_norm;
  int64_t threads;
};

TEST(WholeModel, LossAndEveryGradientEqualAutograd) {
  const ModelCase cases[] = {{"pre", "layernorm", true, 1},
                             {"pre", "rmsnorm", false, 2},
                             {"post", "layernorm", false, 2},
                             {"post", "rmsnorm", true, 1}};
  for (const ModelCase& c : cases) {
    SCOPED_TRACE(testing::Message() << c.placement << " " << c.norm);
    TrainingSettings s;
    s.placement = c.placement;
    s.norm = c.norm;
    s.final_norm = c.final_norm;
    s.threads = c.threads;
    s.layers = 3;
    s.d_model = 20;
    s.ffn_width = 48;
    s.vocab_size = 19;
    s.sequence_length = 11;
    s.batch_size = 5;
    Learner learner(s);
    std::ranges::copy(RandomValues(learner.parameters().buffer_size(), 5, 0.3f),
                      learner.weights().begin());
    std::vector<int32_t> tokens(55);
    std::vector<int32_t> targets(55);
    for (int i = 0; i < 55; ++i) {
      tokens[static_cast<size_t>(i)] = i * 7 % 19;
      targets[static_cast<size_t>(i)] = i * 5 % 19;
    }
    Batch batch;
    batch.tokens = tokens;
    batch.targets = targets;
    const double loss = learner.ComputeGradients(1, {&batch, 1});

    Tensors parameters;
    for (const Parameter& p : learner.parameters().all()) {
      parameters.push_back(ToTensor(
          learner.weights().subspan(static_cast<size_t>(p.offset), static_cast<size_t>(p.count)),
          p.shape));
    }
    const auto integers = [](std::vector<int32_t>& v) {
      return torch::from_blob(v.data(), {5, 11}, torch::kInt32).to(torch::kInt64);
    };
    const torch::Tensor expected =
        ReferenceLoss(s, parameters, integers(tokens), integers(targets));
    expected.backward();
    EXPECT_NEAR(loss, expected.item<double>(), 1e-6 * expected.item<double>());
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Parameter& p = learner.parameters().all()[i];
      const auto gradient =
          learner.gradients().subspan(static_cast<size_t>(p.offset), static_cast<size_t>(p.count));
      // The keys' bias moves all scores of a row alike: its true gradient is zero.
      EXPECT_LT(RelativeError(gradient, parameters[i].grad()), 2e-5) << p.path;
    }
  }
}

}  // namespace
}  // namespace normlab::trainer
