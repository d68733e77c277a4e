// What tells a right placement from an almost right one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/trainer/model/initialization.h"
#include "server/trainer/model/model.h"
#include "server/trainer/model/placement/placement.h"
#include "tests/unit/trainer/probe.h"

namespace normlab::trainer {
namespace {

TrainingSettings SettingsOf(const std::string& placement) {
  TrainingSettings settings;
  settings.placement = placement;
  settings.layers = 4;
  return settings;
}

// One block of a placement over fixed random numbers.
class BlockProbe : public Probe {
 public:
  BlockProbe(const TrainingSettings& settings, int64_t index)
      : Probe(2, 8, 64, [&](Value x) {
          return FindPlacement(settings.placement).RecordBlock(Block(settings, index), x);
        }) {
    SetWhere("/scale", 1);
  }

  // All parameters whose path contains `part`.
  void SetWhere(std::string_view part, float value) {
    for (const Parameter& parameter : parameters().all()) {
      if (parameter.path.find(part) == std::string::npos) continue;
      std::ranges::fill(weights(parameters().Find(parameter.path)), value);
    }
  }

  // The weights of the parameters that both have.
  void TakeFrom(BlockProbe& other) {
    for (const Parameter& parameter : parameters().all()) {
      const auto same = [&](const Parameter& p) { return p.path == parameter.path; };
      if (std::ranges::none_of(other.parameters().all(), same)) continue;
      std::ranges::copy(other.weights(other.parameters().Find(parameter.path)),
                        weights(parameters().Find(parameter.path)).begin());
    }
  }
};

// Both blocks of number `index` give the same bits, forward and back, with the same weights.
void ExpectSameBits(
    const TrainingSettings& a, const TrainingSettings& b, int64_t index,
    const std::function<void(BlockProbe&)>& prepare_b = [](BlockProbe&) {}) {
  SCOPED_TRACE(a.placement + " and " + b.placement + ", block " + std::to_string(index));
  BlockProbe one(a, index);
  BlockProbe other(b, index);
  other.TakeFrom(one);
  prepare_b(other);
  one.Run();
  other.Run();
  EXPECT_EQ(one.output(), other.output());
  EXPECT_EQ(one.input_gradient(), other.input_gradient());
}

TEST(Placement, MixIsPostUpToItsFractionAndPreBehind) {
  TrainingSettings mix = SettingsOf("mix");
  for (const double fraction : {0.0, 0.25, 0.5, 0.74, 1.0}) {
    mix.mix_fraction = fraction;
    for (int64_t i = 0; i < 4; ++i) {
      const bool post = i < static_cast<int64_t>(fraction * 4);
      ExpectSameBits(SettingsOf(post ? "post" : "pre"), mix, i);
    }
  }
}

TEST(Placement, MixCountsItsBlocksAsWritten) {
  TrainingSettings mix = SettingsOf("mix");
  mix.layers = 100;
  mix.mix_fraction = 0.29;  // times 100 is 28.999999999999996 in binary
  ExpectSameBits(SettingsOf("post"), mix, 28);
  ExpectSameBits(SettingsOf("pre"), mix, 29);
}

TEST(Placement, HybridStarIsHybridWithAPreNormFirstBlock) {
  TrainingSettings star = SettingsOf("hybrid-star");
  ExpectSameBits(SettingsOf("pre"), star, 0);
  star.qk_norm = "rms-head";
  TrainingSettings hybrid = SettingsOf("hybrid");
  hybrid.qk_norm = "rms-head";
  ExpectSameBits(hybrid, star, 1);
}

TEST(Placement, LnsIsPreInItsFirstBlockOnly) {
  ExpectSameBits(SettingsOf("pre"), SettingsOf("lns"), 0);
  BlockProbe pre(SettingsOf("pre"), 1);
  BlockProbe lns(SettingsOf("lns"), 1);
  lns.TakeFrom(pre);
  pre.Run();
  lns.Run();
  EXPECT_NE(pre.output(), lns.output());
}

// Halving the norm's gain and bias is what 1 / sqrt(4) does in block 4.
TEST(Placement, LnsDampsTheNormsOutputByTheRootOfTheBlocksNumber) {
  const auto halve = [](BlockProbe& block) {
    for (const Parameter& parameter : block.parameters().all()) {
      if (parameter.path.find("_norm/") == std::string::npos) continue;
      for (float& value : block.weights(block.parameters().Find(parameter.path))) value /= 2;
    }
  };
  ExpectSameBits(SettingsOf("lns"), SettingsOf("pre"), 3, halve);
}

TEST(Placement, LearnedScalesOfOneChangeNothing) {
  const auto set = [](std::string_view part) {
    return [part](BlockProbe& block) { block.SetWhere(part, 1); };
  };
  ExpectSameBits(SettingsOf("pre"), SettingsOf("layerscale"), 0, set("_lambda"));
  ExpectSameBits(SettingsOf("post"), SettingsOf("admin"), 0, set("_omega"));
  ExpectSameBits(SettingsOf("none"), SettingsOf("rezero"), 0, set("rezero_scale"));
}

TEST(Placement, ReZeroIsTheIdentityAtFirst) {
  BlockProbe block(SettingsOf("rezero"), 0);
  block.SetWhere("rezero_scale", 0);
  block.Run();
  EXPECT_EQ(block.output(), block.input());
  EXPECT_EQ(block.input_gradient(), block.output_gradient());
}

// tanh(alpha x) / alpha is x to within alpha^2 x^3 / 3: with such a dyt the extra norms are gone.
TEST(Placement, NormFormerWithoutItsExtrasIsPre) {
  const float alpha = 0x1p-13f;
  TrainingSettings pre = SettingsOf("pre");
  TrainingSettings normformer = SettingsOf("normformer");
  pre.norm = normformer.norm = "dyt";
  BlockProbe expected(pre, 0);
  BlockProbe block(normformer, 0);
  block.TakeFrom(expected);
  block.SetWhere("head_scale", 1);
  for (const std::string norm : {"attention_output_norm", "mlp_hidden_norm"}) {
    block.SetWhere(norm + "/alpha", alpha);
    block.SetWhere(norm + "/scale", 1 / alpha);
    block.SetWhere(norm + "/bias", 0);
  }
  expected.Run();
  block.Run();
  for (size_t i = 0; i < expected.output().size(); ++i) {
    EXPECT_NEAR(block.output()[i], expected.output()[i], 1e-4) << i;
  }
  // With an ordinary norm there it is far from it.
  block.SetWhere("mlp_hidden_norm/alpha", 1);
  block.SetWhere("mlp_hidden_norm/scale", 1);
  block.Run();
  double largest = 0;
  for (size_t i = 0; i < expected.output().size(); ++i) {
    largest = std::max<double>(largest, std::abs(block.output()[i] - expected.output()[i]));
  }
  EXPECT_GT(largest, 0.1);
}

// Scaling heads after the projection, as a wrong NormFormer does, would not do this.
TEST(Placement, NormFormerScalesEachHeadBeforeTheProjection) {
  BlockProbe block(SettingsOf("normformer"), 0);
  BlockProbe expected(SettingsOf("normformer"), 0);
  expected.TakeFrom(block);
  block.SetWhere("head_scale", 1);
  expected.SetWhere("head_scale", 1);
  block.weights(block.parameters().Find("block_0/head_scale"))[1] = 0;
  // Rows 16 to 31 of W_O are what it makes of the second of four heads of width 16.
  const auto w_o = expected.weights(expected.parameters().Find("block_0/attention_output/kernel"));
  std::ranges::fill(w_o.subspan(16 * 64, 16 * 64), 0.0f);
  block.Run();
  expected.Run();
  EXPECT_EQ(block.output(), expected.output());
}

TEST(Placement, OutputsOfPostTypesAreNormalisedPerToken) {
  for (const char* placement :
       {"post", "post-single", "deepnorm", "admin", "b2t", "residual-dual"}) {
    SCOPED_TRACE(placement);
    BlockProbe block(SettingsOf(placement), 1);
    block.SetWhere("norm/bias", 0);
    block.Run();
    for (size_t row = 0; row < 16; ++row) {
      double sum = 0;
      double square = 0;
      for (size_t c = 0; c < 64; ++c) {
        const double value = block.output()[row * 64 + c];
        sum += value;
        square += value * value;
      }
      EXPECT_NEAR(sum / 64, 0.0, 1e-6);
      EXPECT_NEAR(square / 64, 1.0, 1e-5);
    }
  }
}

// A power of two, so that nothing is rounded differently.
TEST(Placement, ResidualScaleScalesTheLastMatrixOfEveryBranch) {
  for (const char* placement : {"pre", "post", "deepnorm", "b2t", "rezero", "hybrid", "lns"}) {
    TrainingSettings scaled = SettingsOf(placement);
    scaled.residual_scale = 0.5;
    const auto halve = [](BlockProbe& block) {
      for (const char* name : {"attention_output", "mlp_out"}) {
        for (const char* part : {"/kernel", "/bias"}) {
          const auto id = block.parameters().Find(std::string("block_1/") + name + part);
          for (float& value : block.weights(id)) value /= 2;
        }
      }
    };
    ExpectSameBits(scaled, SettingsOf(placement), 1, halve);
  }
}

// A whole model over fixed tokens.
class ModelProbe {
 public:
  // `prepare` changes the weights before the model goes forward and back.
  explicit ModelProbe(
      const TrainingSettings& settings,
      const std::function<void(ModelProbe&)>& prepare = [](ModelProbe&) {})
      : program_(parameters_, 2, 8) {
    model_ = RecordModel(settings, program_);
    weights_ = Buffer(parameters_.buffer_size());
    gradients_ = Buffer(parameters_.buffer_size());
    InitializeParameters(settings, parameters_, weights_.span());
    program_.Finish(weights_.data(), gradients_.data());
    for (size_t i = 0; i < program_.tokens().size(); ++i) {
      program_.tokens()[i] = static_cast<int32_t>(i * 5 % 64);
      program_.targets()[i] = static_cast<int32_t>(i * 3 % 64);
    }
    prepare(*this);
    program_.Forward();
    program_.Backward();
  }

  std::span<float> weights(std::string_view path) { return Part(weights_, path); }
  std::span<float> gradient(std::string_view path) { return Part(gradients_, path); }
  std::vector<float> Values(Value value) {
    const float* data = program_.Data(value);
    return {data, data + value.rows() * value.width()};
  }
  float LargestGradient(const Parameter& parameter) const {
    const auto values = gradients_.span().subspan(static_cast<size_t>(parameter.offset),
                                                  static_cast<size_t>(parameter.count));
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    return largest;
  }
  const Model& model() const { return model_; }
  const ParameterTable& parameters() const { return parameters_; }

 private:
  std::span<float> Part(Buffer& buffer, std::string_view path) {
    const Parameter& parameter = parameters_[parameters_.Find(path)];
    return buffer.span().subspan(static_cast<size_t>(parameter.offset),
                                 static_cast<size_t>(parameter.count));
  }

  ParameterTable parameters_;
  Program program_;
  Model model_;
  Buffer weights_;
  Buffer gradients_;
};

TEST(Placement, AtFirstOnlyReZerosScalesTheHeadAndTheEmbeddingGetGradient) {
  TrainingSettings settings = SettingsOf("rezero");
  settings.final_norm = false;
  ModelProbe probe(settings);
  for (const Parameter& parameter : probe.parameters().all()) {
    const std::string& path = parameter.path;
    const bool learns = path.ends_with("rezero_scale") || path == "output/kernel" ||
                        path == "embedding/embedding" || path == "position";
    EXPECT_EQ(probe.LargestGradient(parameter) > 0, learns) << path;
  }
}

TEST(Placement, TheStreamOfResidualDualIsPostBitForBit) {
  TrainingSettings post_settings = SettingsOf("post");
  TrainingSettings dual_settings = SettingsOf("residual-dual");
  post_settings.final_norm = dual_settings.final_norm = false;
  ModelProbe post(post_settings);
  ModelProbe dual(dual_settings);
  ASSERT_EQ(post.model().blocks.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(post.Values(post.model().blocks[i].output),
              dual.Values(dual.model().blocks[i].output))
        << i;
  }
  EXPECT_NE(post.Values(post.model().logits), dual.Values(dual.model().logits));
}

// The same model with a head of its own that holds the embedding transposed (64 tokens, width 64).
TEST(Placement, ATiedEmbeddingGetsTheGradientsOfBothItsUses) {
  TrainingSettings tied_settings = SettingsOf("pre");
  tied_settings.tie_embeddings = true;
  ModelProbe tied(tied_settings);
  ModelProbe untied(SettingsOf("pre"), [&](ModelProbe& probe) {
    const std::span<float> table = tied.weights("embedding/embedding");
    std::ranges::copy(table, probe.weights("embedding/embedding").begin());
    for (size_t token = 0; token < 64; ++token) {
      for (size_t c = 0; c < 64; ++c) {
        probe.weights("output/kernel")[c * 64 + token] = table[token * 64 + c];
      }
    }
  });
  const std::vector<float> logits = tied.Values(tied.model().logits);
  const std::vector<float> expected_logits = untied.Values(untied.model().logits);
  for (size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(logits[i], expected_logits[i], 1e-6);
  for (size_t token = 0; token < 64; ++token) {
    for (size_t c = 0; c < 64; ++c) {
      const float expected = untied.gradient("embedding/embedding")[token * 64 + c] +
                             untied.gradient("output/kernel")[c * 64 + token];
      EXPECT_NEAR(tied.gradient("embedding/embedding")[token * 64 + c], expected,
                  1e-5 * std::abs(expected) + 1e-6);
    }
  }
}

TEST(Placement, EveryBlockTellsDiagnosticsItsEndsAndBothBranches) {
  for (const std::string_view placement : PlacementNames()) {
    SCOPED_TRACE(placement);
    const TrainingSettings settings = SettingsOf(std::string(placement));
    ModelProbe probe(settings);
    Value previous = probe.model().embedded;
    for (const BlockTaps& block : probe.model().blocks) {
      EXPECT_EQ(block.input.index, previous.index);
      EXPECT_EQ(block.branches.size(), 2u);
      previous = block.output;
    }
  }
}

// By hand: 10,240 in embedding, positions and head; 49,728 in the matrices and biases of a block;
// 128 in a LayerNorm and 64 in an RMS norm.
TEST(Placement, ParameterCountsOfTheArticlesModel) {
  const struct {
    const char* placement;
    int64_t count;
  } cases[] = {
      {"pre", 610176},        {"post", 610048},   {"post-single", 608512},
      {"sandwich", 613248},   {"olmo2", 610112},  {"normformer", 617904},
      {"deepnorm", 610048},   {"admin", 611584},  {"rezero", 606988},
      {"layerscale", 611712}, {"b2t", 610048},    {"residual-dual", 610176},
      {"mix", 610176},        {"hybrid", 608384}, {"hybrid-star", 608448},
      {"lns", 610176},        {"none", 606976},
  };
  ASSERT_EQ(std::size(cases), PlacementNames().size());
  for (const auto& c : cases) {
    const std::string placement = c.placement;
    TrainingSettings settings;
    settings.placement = placement;
    const bool hybrid = placement.starts_with("hybrid");
    if (hybrid || placement == "olmo2") settings.norm = "rmsnorm";
    if (hybrid) settings.qk_norm = "rms-head";
    if (placement == "olmo2") settings.qk_norm = "rms-full";
    for (const char* off :
         {"post", "post-single", "deepnorm", "admin", "rezero", "b2t", "residual-dual", "none"}) {
      if (placement == off) settings.final_norm = false;
    }
    ParameterTable parameters;
    Program program(parameters, 1, settings.sequence_length);
    RecordModel(settings, program);
    EXPECT_EQ(parameters.parameter_count(), c.count) << placement;
    settings.tie_embeddings = true;
    ParameterTable tied;
    Program tied_program(tied, 1, settings.sequence_length);
    RecordModel(settings, tied_program);
    EXPECT_EQ(tied.parameter_count(), c.count - 4096) << placement << " tied";
  }
}

}  // namespace
}  // namespace normlab::trainer
