#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "server/trainer/model/components/components.h"
#include "server/trainer/train/learner.h"
#include "tests/unit/trainer/probe.h"

namespace normlab::trainer {
namespace {

// The known answers of Random123, the authors' own library.
TEST(Philox, GivesTheKnownAnswers) {
  struct Answer {
    std::array<uint32_t, 4> counter;
    std::array<uint32_t, 2> key;
    std::array<uint32_t, 4> bits;
  };
  const uint32_t ones = 0xFFFFFFFFu;
  const Answer answers[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627E8D5u, 0xE169C58Du, 0xBC57AC4Cu, 0x9B00DBD8u}},
      {{ones, ones, ones, ones},
       {ones, ones},
       {0x408F276Du, 0x41C83B0Eu, 0xA20BC7C6u, 0x6D5451FDu}},
      {{0x243F6A88u, 0x85A308D3u, 0x13198A2Eu, 0x03707344u},
       {0xA4093822u, 0x299F31D0u},
       {0xD16CFE09u, 0x94FDCCEBu, 0x5001E420u, 0x24126EA1u}},
  };
  for (const Kernels* kernels : AvailableKernels()) {
    for (const Answer& answer : answers) {
      std::array<uint32_t, 4> bits{};
      kernels->philox(answer.counter.data(), answer.key.data(), bits.data());
      EXPECT_EQ(bits, answer.bits);
    }
  }
}

// A dropout between fixed inputs and a fixed gradient.
class DroppingProgram {
 public:
  explicit DroppingProgram(double probability, int64_t batch = 4, int64_t time = 50,
                           int64_t width = 101)
      : input_(static_cast<size_t>(batch * time * width), 1.0f), program_(table_, batch, time) {
    const Value x = program_.NewValue(width);
    Record<Source>(program_, input_, x, &input_gradient_);
    y_ = Dropout(probability, 7, x);
    Record<Sink>(program_, input_, y_);
    program_.Finish(nullptr, nullptr);
  }

  std::vector<float> Run(const Moment& moment, int64_t first_sequence = 0) {
    program_.set_moment(moment);
    program_.set_first_sequence(first_sequence);
    program_.Forward();
    program_.Backward();
    const float* y = program_.Data(y_);
    return {y, y + input_.size()};
  }

  Program& program() { return program_; }
  const std::vector<float>& input_gradient() const { return input_gradient_; }

 private:
  const std::vector<float> input_;
  std::vector<float> input_gradient_;
  ParameterTable table_;
  Program program_;
  Value y_;
};

TEST(Dropout, DropsThisPartAndScalesTheRest) {
  for (const double p : {0.1, 0.5, 0.9}) {
    DroppingProgram dropping(p);
    const std::vector<float> y = dropping.Run({.step = 1});
    const auto kept = static_cast<float>(1 / (1 - p));
    EXPECT_TRUE(std::ranges::all_of(y, [&](float v) { return v == 0 || v == kept; }));
    const auto n = static_cast<double>(y.size());
    const auto dropped = static_cast<double>(std::ranges::count(y, 0.0f));
    EXPECT_NEAR(dropped / n, p, 4 * std::sqrt(p * (1 - p) / n)) << p;  // four standard deviations
  }
}

TEST(Dropout, TheWayBackHasTheSameMask) {
  DroppingProgram dropping(0.3);
  const std::vector<float> y = dropping.Run({.step = 5, .batch = 2});
  EXPECT_EQ(dropping.input_gradient(), y);  // ones in, ones back
}

TEST(Dropout, TheMaskDiffersByStepBatchAndPlaceAndRepeats) {
  DroppingProgram dropping(0.5);
  const std::vector<float> first = dropping.Run({.step = 1, .batch = 0});
  EXPECT_NE(dropping.Run({.step = 2, .batch = 0}), first);
  EXPECT_NE(dropping.Run({.step = 1, .batch = 1}), first);
  EXPECT_NE(dropping.Run({.step = 1 + (int64_t{1} << 32), .batch = 0}), first);
  EXPECT_NE(dropping.Run({.step = 1, .batch = 0}, 4), first);
  EXPECT_EQ(dropping.Run({.step = 1, .batch = 0}), first);
}

TEST(Dropout, OutsideTrainingNothingIsDropped) {
  DroppingProgram dropping(0.5);
  dropping.program().set_training(false);
  const std::vector<float> y = dropping.Run({.step = 1});
  EXPECT_TRUE(std::ranges::all_of(y, [](float v) { return v == 1.0f; }));
  EXPECT_EQ(dropping.input_gradient(), y);
}

TEST(Dropout, ProbabilityZeroRecordsNothing) {
  ParameterTable table;
  Program program(table, 1, 1);
  const Value x = program.NewValue(3);
  EXPECT_EQ(Dropout(0, 7, x).index, x.index);
}

TrainingSettings SmallSettings(double dropout) {
  TrainingSettings settings;
  settings.layers = 2;
  settings.d_model = 16;
  settings.heads = 2;
  settings.ffn_width = 32;
  settings.vocab_size = 12;
  settings.sequence_length = 8;
  settings.batch_size = 6;
  settings.dropout = dropout;
  return settings;
}

double LossOfStep(const TrainingSettings& settings, int64_t step) {
  Learner learner(settings);
  Batch batch;
  for (int32_t i = 0; i < 48; ++i) {
    batch.tokens.push_back(i * 7 % 12);
    batch.targets.push_back(i * 5 % 12);
  }
  return learner.ComputeGradients(step, {&batch, 1});
}

TEST(Dropout, TheNumberOfThreadsDoesNotChangeTheMasks) {
  TrainingSettings settings = SmallSettings(0.4);
  const double one = LossOfStep(settings, 1);
  EXPECT_GT(std::abs(LossOfStep(settings, 2) - one), 1e-3);  // another mask shows
  EXPECT_GT(std::abs(LossOfStep(SmallSettings(0), 1) - one), 1e-3);
  for (const int64_t threads : {2, 5}) {
    settings.threads = threads;
    EXPECT_NEAR(LossOfStep(settings, 1), one, 1e-6) << threads;
  }
}

}  // namespace
}  // namespace normlab::trainer
