// What holds for every model: causality, independence of the batch, parameter counts, refusals.
#include "server/trainer/model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "server/trainer/model/components/switch.h"
#include "tests/unit/trainer/model_run.h"
#include "tests/unit/trainer/recorder.h"

namespace normlab::trainer {
namespace {

struct NamedSettings {
  std::string name;
  TrainingSettings settings;
};

TrainingSettings With(TrainingSettings settings,
                      const std::function<void(TrainingSettings&)>& change) {
  change(settings);
  return settings;
}

TrainingSettings Uniform() {
  return With(SmallModel(), [](auto& s) { s.attention = "uniform", s.heads = 1; });
}

TrainingSettings RoomySwitch() {
  return With(SmallModel(), [](auto& s) { s.ffn = "switch", s.capacity_factor = 4; });
}

std::vector<NamedSettings> CausalModels() {
  std::vector<NamedSettings> models = {
      {"uniform", Uniform()},
      {"xl", SmallXl(5)},
      {"switch", RoomySwitch()},
      {"switch_in_xl", With(SmallXl(5), [](auto& s) { s.ffn = "switch", s.capacity_factor = 4; })},
      {"bf16", With(SmallModel(), [](auto& s) { s.precision = "bf16"; })},
      {"bf16_xl", With(SmallXl(5), [](auto& s) { s.precision = "bf16"; })},
      {"numbers", With(SmallModel(), [](auto& s) { s.data = "gaussian"; })},
      {"encdec_pre", SmallEncoderDecoder("pre")},
      {"encdec_post", SmallEncoderDecoder("post")},
      {"encdec_deepnorm", SmallEncoderDecoder("deepnorm")},
  };
  for (const std::string positions : {"learned", "sinusoidal", "rotary", "none"}) {
    models.push_back({positions, With(SmallModel(), [&](auto& s) { s.positions = positions; })});
  }
  for (const std::string activation : {"relu", "gelu", "swiglu"}) {
    models.push_back({activation, With(SmallModel(), [&](auto& s) { s.activation = activation; })});
  }
  return models;
}

class EveryModel : public testing::TestWithParam<NamedSettings> {};

INSTANTIATE_TEST_SUITE_P(Models, EveryModel, testing::ValuesIn(CausalModels()),
                         [](const auto& model) { return model.param.name; });

// Changes what the model reads at `row` of the batch.
void ChangeInput(const TrainingSettings& settings, Program& program, int64_t row) {
  const auto index = static_cast<size_t>(row);
  if (settings.data == "gaussian") {
    program.inputs().inputs[index * static_cast<size_t>(settings.d_model)] += 1.0f;
  } else {
    program.tokens()[index] = static_cast<int32_t>((program.tokens()[index] + 1) % 11);
  }
}

TEST_P(EveryModel, ATokenChangesNothingBeforeIt) {
  const TrainingSettings& s = GetParam().settings;
  for (int64_t t = 0; t < s.sequence_length; ++t) {
    ModelRun run(s);
    run.program().set_training(false);
    const std::vector<float> before = run.Forward();
    ChangeInput(s, run.program(), s.sequence_length + t);  // of the second sequence
    const std::vector<float> after = run.Forward();
    const auto changed = static_cast<size_t>((s.sequence_length + t) * s.vocab_size);
    for (size_t i = 0; i < changed; ++i) ASSERT_EQ(before[i], after[i]) << t << " " << i;
    bool differs = false;
    for (size_t i = changed; i < changed + static_cast<size_t>(s.vocab_size); ++i) {
      differs |= before[i] != after[i];
    }
    EXPECT_TRUE(differs) << t;
  }
}

TEST_P(EveryModel, TheOtherSequencesOfTheBatchChangeNothing) {
  const TrainingSettings& s = GetParam().settings;
  ModelRun packed(s);
  TrainingSettings alone_settings = s;
  alone_settings.batch_size = 1;
  ModelRun alone(alone_settings);
  const auto part = [&](const auto& values, int64_t width) {
    const auto begin = values.begin() + s.sequence_length * width;
    return std::vector(begin, begin + s.sequence_length * width);
  };
  alone.program().tokens() = part(packed.program().tokens(), 1);
  alone.program().inputs().source = part(packed.program().inputs().source, 1);
  if (s.data == "gaussian") {
    alone.program().inputs().inputs = part(packed.program().inputs().inputs, s.d_model);
  }
  const std::vector<float> logits = packed.Forward();
  EXPECT_EQ(alone.Forward(), part(logits, s.vocab_size));
}

// Directional derivative of the loss along random directions, by central differences.
TEST_P(EveryModel, GradientsAreTheSlopeOfTheLoss) {
  const TrainingSettings& s = GetParam().settings;
  if (s.precision == "bf16") GTEST_SKIP() << "its loss is a staircase";
  if (s.ffn == "switch") GTEST_SKIP() << "a token that changes its expert makes it jump";
  if (s.activation == "relu") GTEST_SKIP() << "its kinks are in the way; autograd checks it";
  ModelRun run(s);
  run.program().set_training(false);
  run.ForwardAndBack();
  const std::vector<float> start(run.all_weights().begin(), run.all_weights().end());
  for (const uint32_t seed : {21u, 22u}) {
    const std::vector<float> direction = RandomValues(run.table().buffer_size(), seed);
    double slope = 0;
    for (size_t i = 0; i < start.size(); ++i) {
      slope += static_cast<double>(run.all_gradients()[i]) * direction[i];
    }
    double losses[2];
    const float step = 1e-3f;
    for (const int side : {0, 1}) {
      for (size_t i = 0; i < start.size(); ++i) {
        run.all_weights()[i] = start[i] + (side == 0 ? -step : step) * direction[i];
      }
      run.Forward();
      losses[side] = run.program().loss();
    }
    std::ranges::copy(start, run.all_weights().begin());
    EXPECT_NEAR((losses[1] - losses[0]) / (2 * step), slope, 2e-2 * std::abs(slope) + 1e-3);
  }
}

TEST_P(EveryModel, TrainsWithEverythingLookedAtAndRepeats) {
  TrainingSettings s = GetParam().settings;
  s.steps = 40;
  s.learning_rate = 1e-2;
  s.threads = 2;
  s.dropout = 0.05;
  s.diagnose_every = 10;
  s.probe_every = 20;
  Recorder first;
  Recorder second;
  EXPECT_EQ(Train(s, first).ending, Ending::kFinished);
  Train(s, second);
  EXPECT_EQ(first.series["loss"], second.series["loss"]);
  EXPECT_EQ(first.series["gradient_norm"], second.series["gradient_norm"]);
  if (s.data != "gaussian") {  // nothing to be learned there
    EXPECT_LT(first.series["loss"].back(), 0.8 * first.series["loss"].front());
  }
  EXPECT_EQ(first.series.contains("balance_loss"), s.ffn == "switch");
  for (const double balance : first.series["balance_loss"]) EXPECT_GE(balance, 2 * 0.8);
}

int64_t Parameters(const TrainingSettings& settings) {
  ParameterTable table;
  Program program(table, settings.batch_size, settings.sequence_length);
  RecordModel(settings, program);
  return table.parameter_count();
}

// d 12, FFN 20, vocabulary 11, time 7, 2 layers.
constexpr int64_t kNorm = 2 * 12;
constexpr int64_t kAttention = 12 * 36 + 36 + 12 * 12 + 12;
constexpr int64_t kFeedForward = 12 * 20 + 20 + 20 * 12 + 12;
constexpr int64_t kEmbedding = 11 * 12;
constexpr int64_t kPositions = 7 * 12;
constexpr int64_t kHead = 12 * 11;
constexpr int64_t kEnds = kEmbedding + kHead + kNorm;  // with the final norm
constexpr int64_t kBlock = 2 * kNorm + kAttention + kFeedForward;

TEST(ParameterCount, IsThatOfTheFormulas) {
  EXPECT_EQ(Parameters(SmallModel()), kEnds + kPositions + 2 * kBlock);
  for (const char* positions : {"sinusoidal", "rotary", "none"}) {
    EXPECT_EQ(Parameters(With(SmallModel(), [&](auto& s) { s.positions = positions; })),
              kEnds + 2 * kBlock);
  }
  EXPECT_EQ(Parameters(With(SmallModel(), [](auto& s) { s.activation = "swiglu"; })),
            kEnds + kPositions + 2 * (kBlock + 12 * 20 + 20));
  EXPECT_EQ(Parameters(Uniform()), kEnds + kPositions + 2 * (kBlock - kAttention + 12 * 12 + 12));
  EXPECT_EQ(Parameters(With(SmallModel(), [](auto& s) { s.data = "gaussian"; })),
            kEnds - kEmbedding + kPositions + 2 * kBlock);
  EXPECT_EQ(Parameters(RoomySwitch()),
            kEnds + kPositions + 2 * (kBlock + 3 * kFeedForward + 12 * 4));
  EXPECT_EQ(Parameters(SmallXl(5)), kEnds + 2 * (kBlock + 12 * 12 + 12 * 2 + 12));
  EXPECT_EQ(Parameters(SmallEncoderDecoder("pre")),
            2 * (kEmbedding + kPositions + kNorm) + kHead + 4 * kBlock + 2 * (kAttention + kNorm));
  EXPECT_EQ(Parameters(SmallEncoderDecoder("post")),
            2 * (kEmbedding + kPositions) + kHead + 4 * kBlock + 2 * (kAttention + kNorm));
}

TEST(ModelSettings, WhatDoesNotGoTogetherIsRefusedByName) {
  using Change = std::function<void(TrainingSettings&)>;
  const std::pair<const char*, Change> cases[] = {
      {"activation", [](auto& s) { s.activation = "tanh"; }},
      {"positions", [](auto& s) { s.positions = "alibi"; }},
      {"positions", [](auto& s) { s.positions = "rotary", s.d_model = 6; }},
      {"attention", [](auto& s) { s.attention = "linear"; }},
      {"heads", [](auto& s) { s.attention = "uniform"; }},
      {"dropout", [](auto& s) { s.dropout = 1; }},
      {"precision", [](auto& s) { s.precision = "fp16"; }},
      {"capacity_factor", [](auto& s) { s.ffn = "switch", s.capacity_factor = 0.1; }},
      {"normformer", [](auto& s) { s.ffn = "switch", s.placement = "normformer"; }},
      {"tie_embeddings", [](auto& s) { s.data = "gaussian", s.tie_embeddings = true; }},
      {"positions", [](auto& s) { s.model = "xl"; }},
      {"placement", [](auto& s) { s = SmallXl(4), s.placement = "post"; }},
      {"causal", [](auto& s) { s = SmallXl(4), s.causal = false; }},
      {"table_length", [](auto& s) { s = SmallXl(4), s.table_length = 0; }},
      {"data", [](auto& s) { s.model = "encdec"; }},
      {"placement", [](auto& s) { s = SmallEncoderDecoder("pre"), s.placement = "mix"; }},
      {"ffn", [](auto& s) { s = SmallEncoderDecoder("pre"), s.ffn = "switch"; }},
      {"tie_embeddings", [](auto& s) { s = SmallEncoderDecoder("pre"), s.tie_embeddings = true; }},
      {"accumulate", [](auto& s) { s = SmallXl(4), s.accumulate = 2; }},
      {"data", [](auto& s) { s = SmallXl(4), s.data = "gaussian"; }},
      {"qk_norm", [](auto& s) { s = SmallEncoderDecoder("pre"), s.qk_norm = "rms-head"; }},
  };
  for (const auto& [name, change] : cases) {
    TrainingSettings settings = SmallModel();
    change(settings);
    try {
      CheckModelSettings(settings);
      ADD_FAILURE() << name << " was accepted";
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(name));
    }
  }
}

}  // namespace
}  // namespace normlab::trainer
