#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "server/trainer/model/components/attend.h"
#include "server/trainer/model/deepnorm_constants.h"
#include "server/trainer/model/placement/placement.h"
#include "tests/unit/trainer/model_run.h"

namespace normlab::trainer {
namespace {

TEST(EncoderDecoder, PaddingOfTheSourceIsNotSeen) {
  for (const char* placement : {"pre", "post", "deepnorm"}) {
    ModelRun run(SmallEncoderDecoder(placement));
    run.program().inputs().source_lengths = {7, 4, 1};
    const std::vector<float> before = run.Forward();
    run.program().inputs().source[7 + 4] = 10;  // behind the second sequence's end
    run.program().inputs().source[14 + 6] = 10;
    EXPECT_EQ(run.Forward(), before) << placement;
    run.program().inputs().source[7 + 3] = (run.program().inputs().source[7 + 3] + 1) % 11;
    EXPECT_NE(run.Forward(), before) << placement;
  }
}

TEST(EncoderDecoder, EveryTargetSeesTheWholeSource) {
  ModelRun run(SmallEncoderDecoder("pre"));
  const std::vector<float> before = run.Forward();
  int32_t& last = run.program().inputs().source[6];
  last = (last + 1) % 11;
  const std::vector<float> after = run.Forward();
  EXPECT_NE(before[0], after[0]);  // the first target's logits by the last source token
  EXPECT_TRUE(std::equal(before.begin() + 77, before.end(), after.begin() + 77));
}

TEST(EncoderDecoder, AnEmptySourceGivesFiniteNumbersEverywhere) {
  for (const char* placement : {"pre", "post", "deepnorm"}) {
    ModelRun run(SmallEncoderDecoder(placement));
    run.program().inputs().source_lengths = {0, 3, 0};
    const std::vector<float> logits = run.ForwardAndBack();
    const auto finite = [](float x) { return std::isfinite(x); };
    EXPECT_TRUE(std::ranges::all_of(logits, finite)) << placement;
    EXPECT_TRUE(std::ranges::all_of(run.all_gradients(), finite)) << placement;
  }
}

TEST(Attend, AQueryThatSeesNoKeyGivesZerosAndSendsNothingBack) {
  ParameterTable table;
  Program program(table, 2, 5);
  const Value qkv = program.NewValue(3 * 8);
  std::vector<float> gradient;
  Record<Source>(program, RandomValues(10 * 24, 1), qkv, &gradient);
  const Value y = Attend({.width = 8,
                          .heads = 2,
                          .queries = {qkv, 0},
                          .keys = {qkv, 8},
                          .values = {qkv, 16},
                          .sight = Sight::kSource});
  Record<Sink>(program, RandomValues(10 * 8, 2), y);
  program.Finish(nullptr, nullptr);
  program.inputs().source_lengths = {0, 3};
  program.Forward();
  program.Backward();
  const float* output = program.Data(y);
  EXPECT_TRUE(std::all_of(output, output + 40, [](float v) { return v == 0; }));
  EXPECT_TRUE(std::all_of(output + 40, output + 80, [](float v) { return v != 0; }));
  EXPECT_TRUE(
      std::all_of(gradient.begin(), gradient.begin() + 120, [](float v) { return v == 0; }));
  EXPECT_TRUE(std::ranges::all_of(gradient, [](float v) { return std::isfinite(v); }));
}

// With zero weights the feed-forward branch is its bias, here the first unit vector e_0: the block
// is N(alpha n + e_0) with n = N(x), from which alpha can be read.
TEST(EncoderDecoder, DeepNormHasItsOwnAlphaInEachStack) {
  TrainingSettings settings = SmallEncoderDecoder("deepnorm");
  settings.layers = 3;
  settings.decoder_layers = 2;
  settings.norm_gain = false;
  for (const Part part : {Part::kEncoder, Part::kOnly}) {
    const double alpha =
        part == Part::kEncoder ? DeepNormOfEncoder(3, 2).alpha : DeepNormOfStack(3).alpha;
    const std::string bias =
        part == Part::kEncoder ? "encoder_block_0/mlp_out/bias" : "block_0/mlp_out/bias";
    Probe probe(1, 1, 12, [&](Value x) {
      return FindPlacement("deepnorm").RecordBlock(Block(settings, 0, nullptr, {.part = part}), x);
    });
    for (size_t i = 0; i < probe.parameters().all().size(); ++i) {
      std::ranges::fill(probe.weights(static_cast<ParameterTable::Id>(i)), 0.0f);
    }
    probe.weights(probe.parameters().Find(bias))[0] = 1.0f;
    probe.Run();
    // n = N(x); N(alpha n + e_0) is n alpha / s and e_0 / s, less its mean: the ratio of two
    // differences is free of mean and s.
    std::vector<double> n(probe.input().begin(), probe.input().end());
    double mean = 0;
    for (const double v : n) mean += v / 12;
    double variance = 0;
    for (const double v : n) variance += (v - mean) * (v - mean) / 12;
    for (double& v : n) v = (v - mean) / std::sqrt(variance + settings.norm_epsilon);
    const std::vector<float>& y = probe.output();
    const double scale = (y[1] - y[2]) / (alpha * (n[1] - n[2]));
    EXPECT_NEAR((y[0] - y[1]) / scale, alpha * (n[0] - n[1]) + 1, 1e-4);
  }
}

}  // namespace
}  // namespace normlab::trainer
