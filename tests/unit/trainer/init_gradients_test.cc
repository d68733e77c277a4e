// The theory's model (Xiong et al. 2020) at initialisation: the gradient of the last block's second
// feed-forward matrix falls with depth in Pre-Norm and not in Post-Norm.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "server/trainer/model/initialization.h"
#include "tests/unit/trainer/model_run.h"

namespace normlab::trainer {
namespace {

TrainingSettings Theory(const std::string& placement, int64_t layers) {
  TrainingSettings s;
  s.placement = placement;
  s.final_norm = placement == "pre";
  s.layers = layers;
  s.d_model = 128;
  s.ffn_width = 128;
  s.heads = 1;
  s.attention = "uniform";
  s.causal = false;
  s.bias = false;
  s.activation = "relu";
  s.norm_gain = false;
  s.norm_epsilon = 1e-12;
  s.positions = "none";
  s.init = "fan-in";
  s.data = "gaussian";
  s.batch_size = 8;
  s.sequence_length = 16;
  s.vocab_size = 64;
  return s;
}

double LastGradientNorm(TrainingSettings settings, uint32_t seed) {
  settings.seed = seed;
  ModelRun run(settings);
  InitializeParameters(settings, run.table(), run.all_weights());
  Batch& batch = run.program().inputs();
  batch.inputs = RandomValues(8 * 16 * 128, 100 + seed);
  std::mt19937 engine(seed);
  for (int32_t& target : batch.targets) target = static_cast<int32_t>(engine() % 64);
  run.ForwardAndBack();
  double squares = 0;
  const std::string last = "block_" + std::to_string(settings.layers - 1) + "/mlp_out/kernel";
  for (const float g : run.gradient(last)) squares += static_cast<double>(g) * g;
  return std::sqrt(squares);
}

struct Sample {
  double mean = 0;
  double deviation = 0;  // of one seed
};

Sample LastGradientNorms(const TrainingSettings& settings) {
  constexpr int kSeeds = 8;
  double sum = 0;
  double squares = 0;
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    const double norm = LastGradientNorm(settings, seed);
    sum += norm;
    squares += norm * norm;
  }
  const double mean = sum / kSeeds;
  return {mean, std::sqrt((squares / kSeeds - mean * mean) * kSeeds / (kSeeds - 1))};
}

TEST(InitGradients, OfTheLastBlockAreThoseOfAnIndependentProgram) {
  struct Case {
    const char* placement;
    int64_t layers;
    double expected;  // mean of four other seeds
  };
  for (const Case& c : {Case{"pre", 6, 0.350}, Case{"pre", 12, 0.263}, Case{"post", 6, 0.875},
                        Case{"post", 12, 0.958}}) {
    const Sample ours = LastGradientNorms(Theory(c.placement, c.layers));
    SCOPED_TRACE(testing::Message() << c.placement << " " << c.layers << ": " << ours.mean << " +- "
                                    << ours.deviation);
    // The means of four and of eight seeds differ by sqrt(1/4 + 1/8) deviations of one.
    EXPECT_NEAR(ours.mean, c.expected, 3 * ours.deviation * std::sqrt(0.25 + 0.125));
    EXPECT_LT(ours.deviation, 0.3 * ours.mean);
  }
}

TEST(InitGradients, FallWithDepthInPreNormOnly) {
  const double pre =
      LastGradientNorms(Theory("pre", 12)).mean / LastGradientNorms(Theory("pre", 6)).mean;
  const double post =
      LastGradientNorms(Theory("post", 12)).mean / LastGradientNorms(Theory("post", 6)).mean;
  // The log-log slope between them: Pre-Norm about -0.42, Post-Norm about 0.
  EXPECT_NEAR(std::log2(pre), -0.42, 0.2);
  EXPECT_GT(std::log2(post), -0.25);
}

}  // namespace
}  // namespace normlab::trainer
