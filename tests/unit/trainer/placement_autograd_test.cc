// Every placement, and what only placements use, against LibTorch's automatic derivatives in double
// precision. The references are written from the papers' formulas, with torch alone.
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"
#include "server/trainer/trainer.h"
#include "tests/unit/trainer/autograd.h"

namespace normlab::trainer {
namespace {

using torch::Tensor;

class PlacementAutogradTest : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() const { return *GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Sets, PlacementAutogradTest, testing::ValuesIn(AutogradKernels()),
                         [](const auto& set) { return std::string(set.param->instruction_set); });

TEST_P(PlacementAutogradTest, DyT) {
  for (const Shape& s : kShapes) {
    Probe probe(
        s.batch, s.time, s.width, [](Value x) { return DyT("n", 0.5, x); }, kernels());
    ExpectSameAsAutograd(probe, s.batch, s.time, [](const Tensor& x, const Tensors& p) {
      return p[1] * torch::tanh(p[0] * x) + p[2];
    });
  }
}

TEST_P(PlacementAutogradTest, NormsWithoutGain) {
  for (const Shape& s : kShapes) {
    for (const std::string norm : {"layernorm", "rmsnorm", "dyt"}) {
      SCOPED_TRACE(testing::Message() << norm << " " << s.width);
      TrainingSettings settings;
      settings.norm = norm;
      settings.norm_epsilon = 1e-3;
      settings.norm_gain = false;
      Probe probe(
          s.batch, s.time, s.width, [&](Value x) { return RecordNorm(settings, "n", x); },
          kernels());
      EXPECT_EQ(probe.parameters().parameter_count(), norm == "dyt" ? 1 : 0);
      ExpectSameAsAutograd(probe, s.batch, s.time, [&](const Tensor& x, const Tensors& p) {
        return norm == "dyt" ? torch::tanh(p[0] * x) : ReferenceNorm(norm, x, {}, {}, 1e-3);
      });
    }
  }
}

TEST_P(PlacementAutogradTest, ConstantAndLearnedScales) {
  for (const Shape& s : kShapes) {
    for (const int64_t groups : {int64_t{1}, s.heads, s.width}) {
      SCOPED_TRACE(testing::Message() << s.width << " in " << groups);
      Probe probe(
          s.batch, s.time, s.width,
          [&](Value x) { return -1.5 * x + LearnedScale("scale", groups, 1, x); }, kernels());
      ExpectSameAsAutograd(probe, s.batch, s.time, [&](const Tensor& x, const Tensors& p) {
        return -1.5 * x + p[0].repeat_interleave(s.width / groups) * x;
      });
    }
  }
}

// q, k (and v) of [.., 3 width] normed in groups with one gain each.
Tensor ReferenceQueryKeyNorm(const Tensor& qkv, const Tensors& gains, int64_t groups,
                             double epsilon) {
  Tensors parts = qkv.chunk(3, -1);
  for (size_t i = 0; i < gains.size(); ++i) {
    const Tensor grouped = parts[i].unflatten(-1, {groups, parts[i].size(-1) / groups});
    parts[i] = ReferenceNorm("rmsnorm", grouped, gains[i], {}, epsilon).flatten(-2, -1);
  }
  return torch::cat(parts, -1);
}

TEST_P(PlacementAutogradTest, QueryKeyNormByHeadAndOverTheFullWidth) {
  for (const Shape& s : kShapes) {
    for (const int64_t groups : {int64_t{1}, s.heads}) {
      for (const bool values : {false, true}) {
        SCOPED_TRACE(testing::Message() << s.width << " in " << groups << " values " << values);
        Probe probe(
            s.batch, s.time, 3 * s.width,
            [&](Value qkv) {
              return QueryKeyNorm("", {.groups = groups, .values = values, .epsilon = 1e-3}, qkv);
            },
            kernels());
        ExpectSameAsAutograd(probe, s.batch, s.time, [&](const Tensor& x, const Tensors& p) {
          return ReferenceQueryKeyNorm(x, p, groups, 1e-3);
        });
      }
    }
  }
}

// The embedding is declared first, as by Embed().
TEST_P(PlacementAutogradTest, TiedHeadIsTheEmbeddingTransposed) {
  for (const Shape& s : kShapes) {
    Probe probe(
        s.batch, s.time, s.width,
        [&](Value x) {
          return TiedHead(x.program->parameters().Declare("e", {19, s.width}, Role::kTiedEmbedding),
                          x);
        },
        kernels());
    ExpectSameAsAutograd(probe, s.batch, s.time,
                         [](const Tensor& x, const Tensors& p) { return x.matmul(p[0].t()); });
  }
}

// --- Whole blocks
// ---------------------------------------------------------------------------------

using Parameters = std::map<std::string, Tensor>;

// The run's norm with the parameters under `path`.
Tensor ReferenceRunNorm(const TrainingSettings& s, const Parameters& parameters,
                        const std::string& path, const Tensor& x) {
  const Tensor gain = s.norm_gain ? parameters.at(path + "/scale") : Tensor();
  const bool has_bias = s.norm_gain && s.norm != "rmsnorm";
  const Tensor bias = has_bias ? parameters.at(path + "/bias") : Tensor();
  if (s.norm != "dyt") return ReferenceNorm(s.norm, x, gain, bias, s.norm_epsilon);
  const Tensor t = torch::tanh(parameters.at(path + "/alpha") * x);
  return s.norm_gain ? gain * t + bias : t;
}

// The sublayers of one block by the names of their parameters.
class ReferenceBlock {
 public:
  ReferenceBlock(const TrainingSettings& settings, int64_t index, const Parameters& parameters)
      : s_(settings), index_(index), parameters_(parameters) {}

  int64_t number() const { return index_ + 1; }  // l

  Tensor Parameter(const std::string& name) const { return parameters_.at(Path(name)); }

  Tensor Norm(const std::string& name, const Tensor& x) const {
    return ReferenceRunNorm(s_, parameters_, Path(name), x);
  }

  Tensor Linear(const std::string& name, const Tensor& x) const {
    const Tensor y = x.matmul(Parameter(name + "/kernel"));
    return s_.bias ? y + Parameter(name + "/bias") : y;
  }

  Tensor Heads(const Tensor& x) const {
    Tensor qkv = Linear("qkv", x);
    if (s_.qk_norm != "off") {
      std::vector<std::string> normed = {"q_norm", "k_norm"};
      if (s_.placement.starts_with("hybrid")) normed.push_back("v_norm");
      const int64_t groups = s_.qk_norm == "rms-head" ? s_.heads : 1;
      Tensors gains;
      for (const std::string& name : normed) {
        gains.push_back(s_.norm_gain ? Parameter(name + "/scale") : Tensor());
      }
      qkv = ReferenceQueryKeyNorm(qkv, gains, groups, s_.norm_epsilon);
    }
    return ReferenceAttention(qkv, s_.heads, true);
  }

  Tensor Hidden(const Tensor& x) const { return torch::gelu(Linear("mlp_in", x), "tanh"); }

  // c A(x) and c M(x).
  Tensor A(const Tensor& x) const {
    return s_.residual_scale * Linear("attention_output", Heads(x));
  }
  Tensor M(const Tensor& x) const { return s_.residual_scale * Linear("mlp_out", Hidden(x)); }

 private:
  std::string Path(const std::string& name) const {
    return "block_" + std::to_string(index_) + "/" + name;
  }

  const TrainingSettings& s_;
  const int64_t index_;
  const Parameters& parameters_;
};

Tensor ReferencePlacement(const TrainingSettings& s, const ReferenceBlock& b, const Tensor& x,
                          std::string_view placement) {
  const double c = s.residual_scale;
  const auto norm = [&](const char* name, const Tensor& v) { return b.Norm(name, v); };
  const char* const n1 = "attention_norm";
  const char* const n2 = "mlp_norm";
  if (placement == "pre") {
    const Tensor u = x + b.A(norm(n1, x));
    return u + b.M(norm(n2, u));
  }
  if (placement == "post" || placement == "residual-dual") {
    const Tensor u = norm(n1, x + b.A(x));
    return norm(n2, u + b.M(u));
  }
  if (placement == "post-single") {
    const Tensor u = x + b.A(x);
    return norm("norm", u + b.M(u));
  }
  if (placement == "sandwich") {
    const Tensor a = b.Linear("attention_output", b.Heads(norm(n1, x)));
    const Tensor u = x + c * norm("attention_output_norm", a);
    const Tensor m = b.Linear("mlp_out", b.Hidden(norm(n2, u)));
    return u + c * norm("mlp_output_norm", m);
  }
  if (placement == "olmo2") {
    const Tensor u = x + c * norm(n1, b.Linear("attention_output", b.Heads(x)));
    return u + c * norm(n2, b.Linear("mlp_out", b.Hidden(u)));
  }
  if (placement == "normformer") {
    const Tensor gamma = b.Parameter("head_scale").unsqueeze(-1);
    const Tensor heads =
        (gamma * b.Heads(norm(n1, x)).unflatten(-1, {s.heads, s.d_model / s.heads}))
            .flatten(-2, -1);
    const Tensor u = x + c * norm("attention_output_norm", b.Linear("attention_output", heads));
    return u + c * b.Linear("mlp_out", norm("mlp_hidden_norm", b.Hidden(norm(n2, u))));
  }
  if (placement == "deepnorm") {
    const double alpha = std::sqrt(std::sqrt(2.0 * static_cast<double>(s.layers)));
    const Tensor u = norm(n1, alpha * x + b.A(x));
    return norm(n2, alpha * u + b.M(u));
  }
  if (placement == "admin") {
    const Tensor u = norm(n1, b.Parameter("attention_omega") * x + b.A(x));
    return norm(n2, b.Parameter("mlp_omega") * u + b.M(u));
  }
  if (placement == "rezero") {
    const Tensor a = b.Parameter("rezero_scale");
    const Tensor u = x + a * b.A(x);
    return u + a * b.M(u);
  }
  if (placement == "layerscale") {
    const Tensor u = x + b.Parameter("attention_lambda") * b.A(norm(n1, x));
    return u + b.Parameter("mlp_lambda") * b.M(norm(n2, u));
  }
  if (placement == "b2t") {
    const Tensor u = norm(n1, x + b.A(x));
    return norm(n2, x + u + b.M(u));
  }
  if (placement == "hybrid") {
    const Tensor y = x + b.A(x);
    const Tensor n = norm(n2, y);
    return n + b.M(n);
  }
  if (placement == "lns") {
    const double root = std::sqrt(static_cast<double>(b.number()));
    const Tensor u = x + b.A(norm(n1, x) / root);
    return u + b.M(norm(n2, u) / root);
  }
  if (placement == "none") {
    const Tensor u = x + b.A(x);
    return u + b.M(u);
  }
  // Blocks of two kinds; the stack below has two blocks.
  if (placement == "mix") return ReferencePlacement(s, b, x, b.number() == 1 ? "post" : "pre");
  if (placement == "hybrid-star") {
    return ReferencePlacement(s, b, x, b.number() == 1 ? "pre" : "hybrid");
  }
  ADD_FAILURE() << "no reference for " << placement;
  return x;
}

Tensor ReferenceStack(const TrainingSettings& s, const Tensor& x0, const Parameters& parameters) {
  Tensor x = x0;
  Tensor d = x0;
  for (int64_t i = 0; i < s.layers; ++i) {
    const ReferenceBlock b(s, i, parameters);
    if (s.placement == "residual-dual") {
      const Tensor a = b.A(x);
      d = d + a + b.M(b.Norm("attention_norm", x + a));
    }
    x = ReferencePlacement(s, b, x, s.placement);
  }
  return s.placement == "residual-dual" ? x + ReferenceRunNorm(s, parameters, "dual_norm", d) : x;
}

// Two blocks of `s`, so that placements whose blocks differ show both kinds.
void ExpectStackEqualsAutograd(TrainingSettings s, const Kernels& kernels) {
  s.layers = 2;
  s.mix_fraction = 0.5;
  s.d_model = 20;
  s.heads = 4;
  s.ffn_width = 44;
  s.norm_epsilon = 1e-5;
  const std::vector<Block> blocks = {Block(s, 0), Block(s, 1)};
  Probe probe(
      2, 7, s.d_model, [&](Value x) { return FindPlacement(s.placement).RecordStack(blocks, x); },
      kernels);
  // Random gains around 0 would make some rows of a norm's output, and with them the scale of
  // errors, arbitrarily small.
  for (const Parameter& p : probe.parameters().all()) {
    if (!p.path.ends_with("/scale")) continue;
    for (float& gain : probe.weights(probe.parameters().Find(p.path))) gain += 1;
  }
  ExpectSameAsAutograd(
      probe, 2, 7,
      [&](const Tensor& x, const Tensors& values) {
        Parameters by_name;
        for (size_t i = 0; i < values.size(); ++i) {
          by_name[probe.parameters().all()[i].path] = values[i];
        }
        return ReferenceStack(s, x, by_name);
      },
      1e-5);
}

TEST_P(PlacementAutogradTest, EveryPlacementWithEveryNorm) {
  for (const std::string_view placement : PlacementNames()) {
    for (const char* norm : {"layernorm", "rmsnorm", "dyt"}) {
      SCOPED_TRACE(testing::Message() << placement << " " << norm);
      TrainingSettings settings;
      settings.placement = placement;
      settings.norm = norm;
      ExpectStackEqualsAutograd(settings, kernels());
    }
  }
}

TEST_P(PlacementAutogradTest, EveryPlacementWithNormedQueriesAndKeysAScaleAndNoBias) {
  for (const std::string_view placement : PlacementNames()) {
    for (const char* qk_norm : {"rms-head", "rms-full"}) {
      SCOPED_TRACE(testing::Message() << placement << " " << qk_norm);
      TrainingSettings settings;
      settings.placement = placement;
      settings.norm = "rmsnorm";
      settings.qk_norm = qk_norm;
      settings.residual_scale = 0.7;
      settings.bias = false;
      ExpectStackEqualsAutograd(settings, kernels());
    }
  }
}

TEST_P(PlacementAutogradTest, EveryPlacementWithoutGain) {
  for (const std::string_view placement : PlacementNames()) {
    SCOPED_TRACE(placement);
    TrainingSettings settings;
    settings.placement = placement;
    settings.norm_gain = false;
    settings.qk_norm = "rms-head";
    ExpectStackEqualsAutograd(settings, kernels());
  }
}

}  // namespace
}  // namespace normlab::trainer
