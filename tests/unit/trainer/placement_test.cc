#include "server/trainer/model/placement/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "server/trainer/model/initialization.h"
#include "server/trainer/model/model.h"
#include "tests/unit/trainer/probe.h"

namespace normlab::trainer {
namespace {

// Sublayers that return 0, norms with gain 1 and bias 0.
void ClearBranches(const ParameterTable& parameters, auto&& weights) {
  for (size_t i = 0; i < parameters.all().size(); ++i) {
    const std::string& path = parameters.all()[i].path;
    std::span<float> values = weights(static_cast<ParameterTable::Id>(i));
    if (path.find("block_") == std::string::npos) continue;
    std::ranges::fill(values, path.ends_with("/scale") ? 1.0f : 0.0f);
  }
}

TEST(Placement, PreWithZeroBranchesIsTheIdentityBitForBit) {
  const TrainingSettings settings;
  Probe probe(2, 8, 64,
              [&](Value x) { return FindPlacement("pre").RecordBlock(Block(settings, 0), x); });
  ClearBranches(probe.parameters(), [&](ParameterTable::Id id) { return probe.weights(id); });
  probe.Run();
  EXPECT_EQ(probe.output(), probe.input());
  // And the way back: the gradient passes untouched.
  EXPECT_EQ(probe.input_gradient(), probe.output_gradient());
}

TEST(Placement, PostOutputsAreNormalisedPerToken) {
  const TrainingSettings settings;
  Probe probe(2, 8, 64,
              [&](Value x) { return FindPlacement("post").RecordBlock(Block(settings, 0), x); });
  for (size_t i = 0; i < probe.parameters().all().size(); ++i) {
    const auto id = static_cast<ParameterTable::Id>(i);
    if (probe.parameters()[id].path.find("norm/") == std::string::npos) continue;
    std::ranges::fill(probe.weights(id), probe.parameters()[id].path.ends_with("scale") ? 1 : 0);
  }
  probe.Run();
  for (size_t row = 0; row < 16; ++row) {
    double sum = 0;
    double square = 0;
    for (size_t c = 0; c < 64; ++c) {
      const double value = probe.output()[row * 64 + c];
      sum += value;
      square += value * value;
    }
    EXPECT_NEAR(sum / 64, 0.0, 1e-6);
    EXPECT_NEAR(square / 64, 1.0, 1e-5);
  }
}

// Logits of a small pre-norm decoder with zero branches, its embeddings scaled.
std::vector<float> LogitsWithEmbeddingsScaled(float factor) {
  TrainingSettings settings;
  settings.layers = 2;
  ParameterTable parameters;
  Program program(parameters, 2, 8);
  const Model model = RecordModel(settings, program);
  Buffer weights(parameters.buffer_size());
  Buffer gradients(parameters.buffer_size());
  InitializeParameters(settings, parameters, weights.span());
  program.Finish(weights.data(), gradients.data());
  const auto values = [&](ParameterTable::Id id) {
    return weights.span().subspan(static_cast<size_t>(parameters[id].offset),
                                  static_cast<size_t>(parameters[id].count));
  };
  ClearBranches(parameters, values);
  for (float& value : values(0)) value *= factor;
  for (size_t i = 0; i < program.tokens().size(); ++i) {
    program.tokens()[i] = static_cast<int32_t>(i * 5 % 64);
  }
  program.Forward();
  const float* logits = program.Data(model.logits);
  return {logits, logits + program.rows() * model.logits.width()};
}

TEST(Placement, ScalingTheEmbeddingsLeavesPreNormLogitsUnchanged) {
  const std::vector<float> plain = LogitsWithEmbeddingsScaled(1.0f);
  const std::vector<float> scaled = LogitsWithEmbeddingsScaled(8.0f);
  ASSERT_EQ(plain.size(), scaled.size());
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(plain[i], scaled[i], 1e-5);
}

TEST(Placement, AnUnknownNameIsRefusedWithTheKnownOnes) {
  try {
    FindPlacement("middle");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("\"middle\""));
    for (const std::string_view name : PlacementNames()) {
      EXPECT_THAT(error.what(), testing::HasSubstr(std::string(name)));
    }
  }
}

}  // namespace
}  // namespace normlab::trainer
