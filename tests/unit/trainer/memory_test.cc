// Transformer-XL.
#include "server/trainer/model/components/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "server/trainer/model/components/attend.h"
#include "tests/unit/trainer/model_run.h"

namespace normlab::trainer {
namespace {

// Copies a decoder's weights into the Transformer-XL of the same sizes, whose q and k, v are two
// matrices; its tables become 0.
void CopyWeights(ModelRun& from, ModelRun& to, int64_t d) {
  for (const Parameter& p : to.table().all()) {
    const std::span<float> target = to.weights(p.path);
    const bool query = p.path.find("/query/") != std::string::npos;
    if (!query && p.path.find("/key_value/") == std::string::npos) {
      const bool relative = p.path.find("/attention/") != std::string::npos;
      if (relative) std::ranges::fill(target, 0.0f);
      if (!relative) std::ranges::copy(from.weights(p.path), target.begin());
      continue;
    }
    const std::string part = query ? "/query/" : "/key_value/";
    std::string path = p.path;
    const std::span<float> qkv = from.weights(path.replace(path.find(part), part.size(), "/qkv/"));
    const size_t width = static_cast<size_t>(query ? d : 2 * d);
    for (size_t i = 0; i < target.size(); ++i) {
      const size_t row = i / width;
      target[i] =
          qkv[row * static_cast<size_t>(3 * d) + (query ? 0 : static_cast<size_t>(d)) + i % width];
    }
  }
}

TEST(TransformerXl, WithoutMemoryAndWithZeroTablesItIsThePlainCausalDecoder) {
  TrainingSettings decoder_settings = SmallModel();
  decoder_settings.positions = "none";
  ModelRun decoder(decoder_settings);
  ModelRun xl(SmallXl(0));
  CopyWeights(decoder, xl, decoder_settings.d_model);
  const std::vector<float> expected = decoder.ForwardAndBack();
  const std::vector<float> actual = xl.ForwardAndBack();
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 2e-5);
  EXPECT_NEAR(xl.program().loss(), decoder.program().loss(), 1e-6);
  const std::span<float> ours = xl.gradient("block_0/mlp_in/kernel");
  const std::span<float> theirs = decoder.gradient("block_0/mlp_in/kernel");
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], theirs[i], 1e-6);
}

TEST(TransformerXl, TokensOneAtATimeEqualOneFullPass) {
  TrainingSettings whole = SmallXl(0);
  whole.sequence_length = 9;
  whole.table_length = 9;
  TrainingSettings single = whole;
  single.sequence_length = 1;
  single.memory_length = 9;
  ModelRun full(whole);
  ModelRun stepped(single);
  for (const Parameter& p : full.table().all()) {
    std::ranges::copy(full.weights(p.path), stepped.weights(p.path).begin());
  }
  const std::vector<float> expected = full.Forward();
  const auto vocab = static_cast<size_t>(whole.vocab_size);
  for (size_t t = 0; t < 9; ++t) {
    for (size_t b = 0; b < 3; ++b) {
      stepped.program().tokens()[b] = full.program().tokens()[b * 9 + t];
    }
    const std::vector<float> logits = stepped.Forward();
    for (size_t b = 0; b < 3; ++b) {
      for (size_t c = 0; c < vocab; ++c) {
        EXPECT_NEAR(logits[b * vocab + c], expected[(b * 9 + t) * vocab + c], 1e-5)
            << t << " " << b;
      }
    }
  }
}

// One head over `memory` + `time` positions whose values are unit vectors, so that the output of a
// row shows the weights of the keys. Equal scores make equal weights.
std::vector<float> KeysSeen(int64_t memory, int64_t time, float filled) {
  ParameterTable table;
  Program program(table, 1, time);
  const int64_t keys = memory + time;
  std::vector<float> kv(static_cast<size_t>(keys * 2 * keys), 0.0f);
  for (int64_t j = 0; j < keys; ++j) kv[static_cast<size_t>(j * 2 * keys + keys + j)] = 1.0f;
  std::vector<float> ignored[3];
  const Value q_value = program.NewValue(time, keys);
  Record<Source>(program, std::vector<float>(static_cast<size_t>(time * keys), 0.0f), q_value,
                 &ignored[0]);
  const Value kv_value = program.NewValue(keys, 2 * keys);
  Record<Source>(program, kv, kv_value, &ignored[1]);
  const Value filled_value = program.NewValue(1, 1);
  Record<Source>(program, std::vector<float>{filled}, filled_value, &ignored[2]);
  const Value y = Attend({.width = keys,
                          .heads = 1,
                          .queries = {q_value, 0},
                          .keys = {kv_value, 0},
                          .values = {kv_value, keys},
                          .sight = Sight::kPast,
                          .memory_filled = filled_value});
  Record<Sink>(program, std::vector<float>(static_cast<size_t>(time * keys), 1.0f), y);
  Record<Sink>(program, std::vector<float>{0.0f}, filled_value);
  program.Finish(nullptr, nullptr);
  program.Forward();
  const float* data = program.Data(y);
  return {data, data + time * keys};
}

TEST(TransformerXl, RowISeesTheMemoryAndIPlusOneKeys) {
  const int64_t memory = 5;
  const int64_t time = 4;
  for (const int filled : {5, 2, 0}) {
    const std::vector<float> weights = KeysSeen(memory, time, static_cast<float>(filled));
    for (int64_t i = 0; i < time; ++i) {
      const auto seen = static_cast<float>(filled + i + 1);
      for (int64_t j = 0; j < memory + time; ++j) {
        const bool visible = j >= memory - filled && j <= memory + i;
        EXPECT_FLOAT_EQ(weights[static_cast<size_t>(i * (memory + time) + j)],
                        visible ? 1 / seen : 0.0f)
            << filled << " " << i << " " << j;
      }
    }
  }
}

// x in, memory and x out.
class Remembering {
 public:
  Remembering() : program_(table_, 2, 3) {
    const Value x = program_.NewValue(1);
    Record<Source>(program_, x_values_, x, &gradient_);
    y_ = WithMemory(4, x);
    filled_ = MemoryFilled(4, program_);
    std::vector<float> outgoing;
    for (int i = 1; i <= 14; ++i) outgoing.push_back(static_cast<float>(i));
    Record<Sink>(program_, outgoing, y_);
    program_.Finish(nullptr, nullptr);
  }

  std::vector<float> Forward() {
    program_.Forward();
    program_.Backward();
    const float* y = program_.Data(y_);
    return {y, y + 14};
  }
  float filled() { return *program_.Data(filled_); }
  Program& program() { return program_; }
  const std::vector<float>& gradient() const { return gradient_; }

 private:
  const std::vector<float> x_values_ = {1, 2, 3, 4, 5, 6};
  ParameterTable table_;
  Program program_;
  std::vector<float> gradient_;
  Value y_;
  Value filled_;
};

TEST(TransformerXl, TheMemoryIsTheLatestPositionsOfEachSequence) {
  Remembering r;
  using Row = std::vector<float>;
  EXPECT_EQ(r.Forward(), (Row{0, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 4, 5, 6}));
  EXPECT_EQ(r.filled(), 0);
  EXPECT_EQ(r.Forward(), (Row{0, 1, 2, 3, 1, 2, 3, 0, 4, 5, 6, 4, 5, 6}));
  EXPECT_EQ(r.filled(), 3);
  EXPECT_EQ(r.Forward(), (Row{3, 1, 2, 3, 1, 2, 3, 6, 4, 5, 6, 4, 5, 6}));
  EXPECT_EQ(r.filled(), 4);
}

TEST(TransformerXl, NoGradientGoesIntoTheMemory) {
  Remembering r;
  r.Forward();
  r.Forward();  // the memory holds what x was
  EXPECT_EQ(r.gradient(), (std::vector<float>{5, 6, 7, 12, 13, 14}));
}

TEST(TransformerXl, ValidationNeitherSeesNorMovesTheMemory) {
  ModelRun run(SmallXl(5));
  ModelRun undisturbed(SmallXl(5));
  run.Forward();
  undisturbed.Forward();
  run.program().set_training(false);
  const std::vector<float> first = run.Forward();
  EXPECT_EQ(run.Forward(), first);
  run.program().set_training(true);
  const std::vector<float> next = run.Forward();
  EXPECT_EQ(next, undisturbed.Forward());
  EXPECT_NE(next, first);
}

TEST(TransformerXl, DistancesBeyondTheTableCountAsTheFarthest) {
  TrainingSettings large = SmallXl(5);
  TrainingSettings small = large;
  small.table_length = 3;
  ModelRun wide(large);
  ModelRun clamped(small);
  for (const Parameter& p : clamped.table().all()) {
    const std::span<float> from = clamped.weights(p.path);
    const std::span<float> to = wide.weights(p.path);
    const size_t row = from.size() / 3;
    for (size_t i = 0; i < to.size(); ++i) {
      to[i] = i < from.size() ? from[i] : from[2 * row + i % row];
    }
  }
  clamped.Forward();
  wide.Forward();
  EXPECT_EQ(clamped.Forward(), wide.Forward());
}

}  // namespace
}  // namespace normlab::trainer
