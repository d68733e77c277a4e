#include "server/trainer/model/initialization.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/trainer/model/deepnorm_constants.h"
#include "server/trainer/model/flax_random.h"
#include "server/trainer/model/model.h"

namespace normlab::trainer {
namespace {

uint32_t BitsOf(float value) { return std::bit_cast<uint32_t>(value); }

// The weights a run of `settings` starts from, by name.
class InitialWeights {
 public:
  explicit InitialWeights(const TrainingSettings& settings) {
    Program program(table_, 1, settings.sequence_length);
    RecordModel(settings, program);
    buffer_.resize(static_cast<size_t>(table_.buffer_size()));
    InitializeParameters(settings, table_, buffer_);
  }

  std::span<const float> operator[](std::string_view path) const { return Of(table_.Find(path)); }
  std::span<const float> Of(ParameterTable::Id id) const {
    return std::span(buffer_).subspan(static_cast<size_t>(table_[id].offset),
                                      static_cast<size_t>(table_[id].count));
  }
  const ParameterTable& table() const { return table_; }

  // Columns [first, first + count) of a kernel.
  std::vector<float> Columns(std::string_view path, size_t first, size_t count) const {
    const std::span<const float> all = (*this)[path];
    const auto width = static_cast<size_t>(table_[table_.Find(path)].shape.back());
    std::vector<float> columns;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i % width >= first && i % width < first + count) columns.push_back(all[i]);
    }
    return columns;
  }

 private:
  ParameterTable table_;
  std::vector<float> buffer_;
};

double Deviation(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

double Largest(std::span<const float> values) {
  double largest = 0;
  for (const float value : values)
    largest = std::max(largest, std::abs(static_cast<double>(value)));
  return largest;
}

// Five standard errors of a normal sample's deviation.
void ExpectDeviation(std::span<const float> values, double expected) {
  const double error = 5 * expected / std::sqrt(2.0 * static_cast<double>(values.size()));
  EXPECT_NEAR(Deviation(values), expected, error);
}

// Fills its interval and never leaves it.
void ExpectUniform(std::span<const float> values, double bound) {
  ExpectDeviation(values, bound / std::sqrt(3.0));
  EXPECT_LE(Largest(values), bound * (1 + 1e-6));
  EXPECT_GT(Largest(values), bound * 0.9);
}

TrainingSettings SettingsWith(const std::string& init) {
  TrainingSettings settings;
  settings.init = init;
  if (init == "deepnorm" || init == "admin") settings.placement = init;
  return settings;
}

TEST(FlaxRandom, UniformNumbersAreThoseOfJax) {
  std::vector<float> values(64 * 192);
  FillUniform(ParameterKey(RootKey(7), "block_0qkv"), 1.0f, values);
  EXPECT_EQ(BitsOf(values[0]), 0x3edde998u);
  EXPECT_EQ(BitsOf(values[1]), 0x3f44f1b8u);
  EXPECT_EQ(BitsOf(values[2]), 0x3d3f7380u);
  EXPECT_EQ(BitsOf(values[3]), 0xbf067df8u);
  EXPECT_EQ(BitsOf(values.back()), 0x3deeda80u);
}

TEST(FlaxRandom, TheSecondParameterOfAModuleHasItsOwnStream) {
  std::vector<float> values(3);
  FillUniform(ParameterKey(RootKey(7), "block_0mlp_in", 2), 1.0f, values);
  EXPECT_EQ(BitsOf(values[0]), 0xbf3bea90u);
  EXPECT_EQ(BitsOf(values[1]), 0xbf1c27e4u);
  EXPECT_EQ(BitsOf(values[2]), 0x3f70b494u);
}

TEST(Initialization, XavierIsJaxsXavierUniform) {
  const InitialWeights weights(SettingsWith("xavier"));
  const std::span<const float> kernel = weights["block_0/mlp_in/kernel"];
  EXPECT_FLOAT_EQ(kernel[0], -0.10406837f);
  EXPECT_FLOAT_EQ(kernel[1], -0.12763701f);
  EXPECT_FLOAT_EQ(kernel[2], 0.00529678f);
  EXPECT_FLOAT_EQ(kernel[3], 0.13169187f);
}

TEST(Initialization, FlaxHasTheDeviationsOfFlax) {
  const InitialWeights weights(SettingsWith("flax"));
  ExpectDeviation(weights["embedding/embedding"], 1);
  ExpectDeviation(weights["output/kernel"], 0.02);
  ExpectDeviation(weights["block_3/qkv/kernel"], 1 / 8.0);
  ExpectDeviation(weights["block_3/mlp_out/kernel"], 1 / 16.0);
  EXPECT_EQ(Largest(weights["position"]), 0);
}

TEST(Initialization, Gpt2ScalesExactlyTwoMatricesABlock) {
  const InitialWeights weights(SettingsWith("gpt2"));
  int scaled = 0;
  for (const Parameter& parameter : weights.table().all()) {
    const std::span<const float> values = weights[parameter.path];
    if (parameter.path.find("norm") != std::string::npos) continue;
    if (parameter.path.ends_with("bias")) {
      EXPECT_EQ(Largest(values), 0) << parameter.path;
      continue;
    }
    const bool small = Deviation(values) < 0.01;
    scaled += small ? 1 : 0;
    ExpectDeviation(values, small ? 0.0040825 : 0.02);
    EXPECT_EQ(small, parameter.path.find("_out") != std::string::npos) << parameter.path;
  }
  EXPECT_EQ(scaled, 2 * 12);
}

TEST(Initialization, XavierTakesTheFanOutOfEachThirdOfTheFusedMatrix) {
  const InitialWeights weights(SettingsWith("xavier"));
  ExpectUniform(weights["block_0/qkv/kernel"], std::sqrt(6.0 / 128));
  ExpectUniform(weights["block_0/attention_output/kernel"], std::sqrt(6.0 / 128));
  ExpectUniform(weights["block_0/mlp_in/kernel"], std::sqrt(6.0 / 320));
  ExpectUniform(weights["block_0/mlp_out/kernel"], std::sqrt(6.0 / 320));
  ExpectUniform(weights["output/kernel"], std::sqrt(6.0 / 128));
  ExpectDeviation(weights["embedding/embedding"], 1);
  EXPECT_EQ(Largest(weights["block_0/mlp_in/bias"]), 0);
}

TEST(Initialization, TorchDrawsKernelsAndBiasesFromOneInterval) {
  const InitialWeights weights(SettingsWith("torch"));
  ExpectUniform(weights["block_0/qkv/kernel"], 1 / 8.0);
  ExpectUniform(weights["block_0/qkv/bias"], 1 / 8.0);
  ExpectUniform(weights["block_0/mlp_out/kernel"], 1 / 16.0);
  ExpectUniform(weights["block_0/mlp_out/bias"], 1 / 16.0);
  ExpectUniform(weights["output/kernel"], 1 / 8.0);
  ExpectDeviation(weights["embedding/embedding"], 1);
}

TEST(Initialization, FanInGivesEveryMatrixVarianceOneOverFanIn) {
  const InitialWeights weights(SettingsWith("fan-in"));
  ExpectDeviation(weights["block_0/qkv/kernel"], 1 / 8.0);
  ExpectDeviation(weights["block_0/mlp_out/kernel"], 1 / 16.0);
  ExpectDeviation(weights["output/kernel"], 1 / 8.0);
  ExpectDeviation(weights["embedding/embedding"], 1);
  // Not truncated.
  EXPECT_GT(Largest(weights["block_0/mlp_in/kernel"]), 3 / 8.0);
}

TEST(Initialization, DeepNormHasGainBetaWhereTheBranchIsScaledAndOneOnQueriesAndKeys) {
  const InitialWeights weights(SettingsWith("deepnorm"));
  const double beta = 0.319472;  // of 12 blocks
  const double square = std::sqrt(2.0 / 128);
  ExpectDeviation(weights.Columns("block_5/qkv/kernel", 0, 64), square);
  ExpectDeviation(weights.Columns("block_5/qkv/kernel", 64, 64), square);
  ExpectDeviation(weights.Columns("block_5/qkv/kernel", 128, 64), beta * square);
  ExpectDeviation(weights["block_5/attention_output/kernel"], beta * square);
  ExpectDeviation(weights["block_5/mlp_in/kernel"], beta * std::sqrt(2.0 / 320));
  ExpectDeviation(weights["block_5/mlp_out/kernel"], beta * std::sqrt(2.0 / 320));
  ExpectDeviation(weights["output/kernel"], 0.02);
  ExpectDeviation(weights["embedding/embedding"], 1);
}

// The stacks of an encoder-decoder differ in length, in branches a block and in DeepNorm's gains.
TEST(Initialization, EncoderAndDecoderAreScaledByTheirOwnStacks) {
  TrainingSettings settings = SettingsWith("gpt2");
  settings.model = "encdec";
  settings.layers = 8;
  settings.decoder_layers = 3;
  ParameterTable table;
  const auto encoder = table.Declare("encoder_block_0/mlp_out/kernel", {64, 64}, Role::kOutput);
  const auto decoder = table.Declare("block_0/mlp_out/kernel", {64, 64}, Role::kOutput);
  const auto cross = table.Declare("block_0/cross_kv/kernel", {64, 128}, Role::kKeyValue);
  std::vector<float> buffer(static_cast<size_t>(table.buffer_size()));
  const auto values = [&](ParameterTable::Id id) {
    return std::span<const float>(buffer).subspan(static_cast<size_t>(table[id].offset),
                                                  static_cast<size_t>(table[id].count));
  };
  InitializeParameters(settings, table, buffer);
  ExpectDeviation(values(encoder), 0.02 / 4);  // 16 branches
  ExpectDeviation(values(decoder), 0.02 / 3);  // 9, with those of the cross attention

  settings.init = "deepnorm";
  InitializeParameters(settings, table, buffer);
  const double square = std::sqrt(2.0 / 128);
  ExpectDeviation(values(encoder), 0.87 / std::pow(4096.0 * 3, 1 / 16.0) * square);
  ExpectDeviation(values(decoder), std::pow(36.0, -0.25) * square);
  const std::span<const float> keys_values = values(cross);
  std::vector<float> keys;
  for (size_t i = 0; i < keys_values.size(); ++i) {
    if (i % 128 < 64) keys.push_back(keys_values[i]);
  }
  ExpectDeviation(keys, square);
}

TEST(Initialization, AdminIsXavierWithOmegasAtOneUntilTheyAreProfiled) {
  const InitialWeights weights(SettingsWith("admin"));
  ExpectUniform(weights["block_5/qkv/kernel"], std::sqrt(6.0 / 128));
  ExpectDeviation(weights["output/kernel"], 0.02);
  for (const float omega : weights["block_5/mlp_omega"]) EXPECT_EQ(omega, 1);
}

TEST(Initialization, GatedLayersAreTwoMatrices) {
  TrainingSettings settings = SettingsWith("xavier");
  settings.activation = "swiglu";
  const InitialWeights weights(settings);
  ASSERT_EQ(weights["block_0/mlp_in/kernel"].size(), 64u * 512u);
  ExpectUniform(weights["block_0/mlp_in/kernel"], std::sqrt(6.0 / 320));
}

TEST(Initialization, ATiedEmbeddingIsDrawnAsTheHead) {
  for (const auto& [init, deviation] :
       {std::pair{"flax", 0.02}, {"gpt2", 0.02}, {"fan-in", 1 / 8.0}}) {
    SCOPED_TRACE(init);
    TrainingSettings settings = SettingsWith(init);
    settings.tie_embeddings = true;
    settings.vocab_size = 40;
    const InitialWeights weights(settings);
    ExpectDeviation(weights["embedding/embedding"], deviation);
    EXPECT_THROW(weights["output/kernel"], std::runtime_error);
  }
}

TEST(Initialization, NoTwoMatricesAreCopiesOfEachOther) {
  for (const char* init : {"flax", "gpt2", "xavier", "torch", "fan-in", "deepnorm", "admin"}) {
    SCOPED_TRACE(init);
    const InitialWeights weights(SettingsWith(init));
    // Ratios do not depend on the scale, so a copy with another scale is found as well.
    std::set<float> ratios;
    int kernels = 0;
    for (const Parameter& parameter : weights.table().all()) {
      if (!parameter.path.ends_with("kernel")) continue;
      const std::span<const float> values = weights[parameter.path];
      ratios.insert(values[1] / values[0]);
      ++kernels;
    }
    EXPECT_EQ(ratios.size(), static_cast<size_t>(kernels));
    EXPECT_EQ(kernels, 4 * 12 + 1);
  }
}

TEST(Initialization, AnotherSeedGivesOtherWeights) {
  TrainingSettings settings = SettingsWith("torch");
  const InitialWeights a(settings);
  settings.seed = 8;
  const InitialWeights b(settings);
  EXPECT_NE(a["block_0/qkv/kernel"][0], b["block_0/qkv/kernel"][0]);
  EXPECT_NE(a["block_0/qkv/bias"][0], b["block_0/qkv/bias"][0]);
}

TEST(Initialization, AnUnknownInitIsRefused) {
  ParameterTable table;
  table.Declare("a/kernel", {2, 3}, Role::kInput);
  std::vector<float> buffer(static_cast<size_t>(table.buffer_size()));
  EXPECT_THROW(InitializeParameters(SettingsWith("zeros"), table, buffer), std::runtime_error);
}

TEST(DeepNormConstants, AreThoseOfThePaper) {
  const struct {
    int64_t layers;
    double alpha;
    double beta;
  } cases[] = {{6, 1.861210, 0.379918},
               {12, 2.213364, 0.319472},
               {24, 2.632148, 0.268642},
               {100, 3.760603, 0.188030}};
  for (const auto& c : cases) {
    EXPECT_NEAR(DeepNormOfStack(c.layers).alpha, c.alpha, 5e-7);
    EXPECT_NEAR(DeepNormOfStack(c.layers).beta, c.beta, 5e-7);
  }
}

// 16 = 2^4 makes every root a power of two: (N^4 M)^(1/16) with N = M = 16 is 16^(5/16) = 2^(5/4).
TEST(DeepNormConstants, OfAnEncoderAndItsDecoder) {
  EXPECT_NEAR(DeepNormOfEncoder(16, 16).alpha, 0.81 * 2.378414230005, 1e-12);
  EXPECT_NEAR(DeepNormOfEncoder(16, 16).beta, 0.87 / 2.378414230005, 1e-12);
  EXPECT_NEAR(DeepNormOfEncoder(18, 18).alpha, 0.81 * std::pow(18, 0.3125), 1e-12);
  EXPECT_NEAR(DeepNormOfDecoder(27).alpha, 3, 1e-12);        // 81^(1/4)
  EXPECT_NEAR(DeepNormOfDecoder(108).beta, 1 / 6.0, 1e-12);  // 1296^(-1/4)
}

}  // namespace
}  // namespace normlab::trainer
