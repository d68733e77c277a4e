// The kernels of a GPU, run on the host, against those of the processor.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "server/trainer/model/components/components.h"
#include "server/trainer/model/kernels/kernels.h"
#include "tests/emulation/emulated_device.h"
#include "tests/emulation/lane_team.h"
#include "tests/unit/trainer/probe.h"

namespace normlab::trainer {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const Kernels& Host() { return *FindKernels("baseline"); }

const StepKernels& Steps() { return EmulatedDevice().step_kernels(); }

// As a part of the largest value.
void ExpectNear(std::span<const float> actual, std::span<const float> expected,
                const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  double largest = 0;
  double error = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    error = std::max(error, std::abs(static_cast<double>(actual[i]) - expected[i]));
  }
  EXPECT_LE(error, 2e-6 * largest) << what;
}

// The same part with both sets of kernels.
void ExpectSamePart(int64_t batch, int64_t time, int64_t width,
                    const std::function<Value(Value)>& part) {
  Probe host(batch, time, width, part, Host());
  Probe device(batch, time, width, part, EmulatedKernels());
  host.Run();
  device.Run();
  ExpectNear(device.output(), host.output(), "output");
  ExpectNear(device.input_gradient(), host.input_gradient(), "input gradient");
  for (size_t i = 0; i < host.parameters().all().size(); ++i) {
    const auto id = static_cast<ParameterTable::Id>(i);
    ExpectNear(device.gradient(id), host.gradient(id), host.parameters()[id].path);
  }
}

class DeviceKernels : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { EmulatedDevice({.reverse = GetParam()}); }
  void TearDown() override { EmulatedDevice(); }
};

INSTANTIATE_TEST_SUITE_P(Orders, DeviceKernels, testing::Bool(),
                         [](const auto& order) { return order.param ? "Reverse" : "Forward"; });

TEST_P(DeviceKernels, ActivationsEqualTheHosts) {
  for (const char* name : {"relu", "gelu", "gelu-tanh", "swiglu"}) {
    SCOPED_TRACE(name);
    ExpectSamePart(2, 7, 26, [&](Value x) { return Activate(name, x); });
    // Where the gradient is added to another.
    ExpectSamePart(2, 7, 26, [&](Value x) { return Activate(name, x) + Activate(name, x); });
  }
}

TEST_P(DeviceKernels, RotaryPositionsAndMeansEqualTheHosts) {
  ExpectSamePart(2, 9, 36, [](Value x) { return Rotate(3, x); });
  ExpectSamePart(2, 9, 36, [](Value x) { return Rotate(3, x) + Rotate(1, x); });
  for (const bool causal : {false, true}) {
    ExpectSamePart(3, 9, 10, [&](Value x) { return MeanOverVisible(causal, x); });
    ExpectSamePart(3, 9, 10, [&](Value x) { return x + MeanOverVisible(causal, x); });
  }
}

TEST_P(DeviceKernels, DropoutDrawsTheVeryBitsOfTheHost) {
  const long rows = 5;
  const long width = 11;
  const std::vector<float> x = RandomValues(rows * width, 1);
  const unsigned moment[2] = {7, 3};
  RandomStream stream;
  stream.key[0] = 12;
  stream.component = 2;
  stream.moment = moment;
  std::vector<float> host = RandomValues(rows * width, 2);
  std::vector<float> device = host;
  for (const bool accumulate : {false, true}) {
    Host().dropout(x.data(), rows, width, stream, 9, 0x60000000u, 1.6f, accumulate, host.data());
    EmulatedKernels().dropout(x.data(), rows, width, stream, 9, 0x60000000u, 1.6f, accumulate,
                              device.data());
    EXPECT_EQ(device, host);
  }
}

TEST_P(DeviceKernels, GradientsOfTokensThatComeTwiceAreAdded) {
  const int tokens[] = {3, 1, 3, 0, 3, 1};
  const long width = 5;
  const std::vector<float> dy = RandomValues(6 * width, 1);
  std::vector<float> host(4 * width, 0.5f);
  std::vector<float> device = host;
  std::vector<float> host_positions(3 * width);
  std::vector<float> device_positions = host_positions;
  Host().embed_backward(dy.data(), tokens, 6, 3, width, host.data(), host_positions.data());
  EmulatedKernels().embed_backward(dy.data(), tokens, 6, 3, width, device.data(),
                                   device_positions.data());
  EXPECT_EQ(device, host);
  EXPECT_EQ(device_positions, host_positions);
}

TEST_P(DeviceKernels, EmbeddingOfTokensNumbersAndPositions) {
  const int tokens[] = {2, 0, 1, 2};
  const std::vector<float> table = RandomValues(4 * 3, 1);
  const std::vector<float> positions = RandomValues(2 * 3, 2);
  for (const int* which : {tokens, static_cast<const int*>(nullptr)}) {
    for (const float* added : {positions.data(), static_cast<const float*>(nullptr)}) {
      std::vector<float> host(12);
      std::vector<float> device(12);
      Host().embed_forward(table.data(), which, added, 4, 2, 3, host.data());
      EmulatedKernels().embed_forward(table.data(), which, added, 4, 2, 3, device.data());
      EXPECT_EQ(device, host);
    }
  }
}

TEST_P(DeviceKernels, SoftmaxLossAndItsGradient) {
  const long rows = 6;
  const long classes = 13;
  const std::vector<float> logits = RandomValues(rows * classes, 1, 3.0f);
  const int targets[] = {4, -1, 0, 12, -1, 7};
  const float scale = 0.25f;
  std::vector<std::vector<float>> results;
  std::vector<double> losses;
  for (const Kernels* kernels : {&Host(), &EmulatedKernels()}) {
    std::vector<float> p(rows * classes);
    std::vector<float> sum(rows);
    std::vector<float> target(rows);
    std::vector<float> gradient = RandomValues(rows * classes, 2);
    double loss = -1;
    kernels->softmax_forward(logits.data(), targets, rows, classes, p.data(), sum.data(),
                             target.data());
    kernels->sum_losses(sum.data(), target.data(), targets, rows, &loss);
    kernels->softmax_backward(p.data(), targets, rows, classes, &scale, true, gradient.data());
    results.push_back(gradient);
    losses.push_back(loss);
  }
  ExpectNear(results[1], results[0], "gradient");
  EXPECT_NEAR(losses[1], losses[0], 1e-5);
}

TEST_P(DeviceKernels, ANanScoreMakesTheRowsThatSeeItNan) {
  const long time = 6;
  const long width = 8;
  std::vector<float> qkv = RandomValues(time * 3 * width, 4);
  qkv[3 * 3 * width + width] = kNan;  // a key of position 3
  std::vector<float> out(time * width);
  std::vector<float> p(static_cast<size_t>(2 * time * AttentionStride(time)));
  EmulatedKernels().attention_forward(qkv.data(), 1, time, width, 2, true, p.data(), out.data(),
                                      nullptr);
  for (long t = 0; t < time; ++t) {
    EXPECT_EQ(std::isnan(out[static_cast<size_t>(t * width)]), t >= 3) << t;
  }
}

// --- The step ------------------------------------------------------------------------------------

TEST(DeviceStep, MeasuresTheNormAndCountsWhatIsNotFinite) {
  std::vector<float> gradients = RandomValues(1000, 1);
  StepState state;
  Steps().measure_gradients(gradients.data(), 1000, &state);
  EXPECT_NEAR(state.squares, Host().sum_of_squares(gradients.data(), 1000), 1e-9);
  EXPECT_EQ(state.non_finite, 0);
  gradients[3] = kNan;
  gradients[900] = -std::numeric_limits<float>::infinity();
  Steps().measure_gradients(gradients.data(), 1000, &state);
  EXPECT_TRUE(std::isnan(state.squares));
  EXPECT_EQ(state.non_finite, 2);
}

StepRecord Finish(double squares, double clip_norm, bool halt, StepState& state) {
  StepRecord records[4];
  StepNumbers numbers;
  numbers.step = 11;
  numbers.slot = 2;
  state.squares = squares;
  Steps().finish_step(&numbers, clip_norm, halt, &state, records);
  EXPECT_EQ(records[1].step, 0);
  EXPECT_EQ(records[2].step, 11);
  return records[2];
}

TEST(DeviceStep, RecordsTheNormBeforeClippingAndClipsOnlyAboveTheLimit) {
  StepState state;
  state.loss = 2.5;
  EXPECT_EQ(Finish(9, 0, true, state).gradient_norm, 3);
  EXPECT_EQ(state.clip, 1);  // off
  const StepRecord record = Finish(9, 1.5, true, state);
  EXPECT_EQ(record.gradient_norm, 3);
  EXPECT_EQ(record.loss, 2.5);
  EXPECT_EQ(state.clip, 0.5f);
  Finish(9, 4, true, state);
  EXPECT_EQ(state.clip, 1);
  Finish(std::numeric_limits<double>::infinity(), 4, false, state);
  EXPECT_EQ(state.clip, 1);  // 0 times infinity would be NaN
}

TEST(DeviceStep, ANonFiniteLossOrNormHaltsForGoodIfAskedTo) {
  StepState state;
  Finish(kNan, 0, false, state);
  EXPECT_EQ(state.halted, 0);
  Finish(kNan, 0, true, state);
  EXPECT_EQ(state.halted, 1);
  Finish(1, 0, true, state);
  EXPECT_EQ(state.halted, 1);
  StepState other;
  other.loss = std::numeric_limits<double>::infinity();
  Finish(1, 0, true, other);
  EXPECT_EQ(other.halted, 1);
}

TEST(DeviceStep, LossesOfBatchesAreAdded) {
  StepNumbers numbers;
  numbers.loss_scale = 0.5;
  StepState state;
  state.loss = 99;
  Steps().begin_step(&state);
  for (const double loss : {4.0, 6.0}) {
    state.batch_loss = loss;
    Steps().add_loss(&numbers, &state);
  }
  EXPECT_EQ(state.loss, 5);
}

// Two steps w = 1, rate .1, decay .01, g = .5 then -.25, in double precision.
TEST(DeviceStep, AdamWTakesTheStepsOfTheFormula) {
  float w = 1;
  float m = 0;
  float v = 0;
  StepState state;
  StepNumbers numbers;
  numbers.rate = 0.1f;
  const double expected[] = {0.899000002, 0.871264058};
  for (int step = 1; step <= 2; ++step) {
    numbers.m_correction = static_cast<float>(1 / (1 - std::pow(0.9, step)));
    numbers.v_correction = static_cast<float>(1 / (1 - std::pow(0.95, step)));
    state.clip = 0.5f;
    const float g = step == 1 ? 1.0f : -0.5f;  // before clipping
    Steps().adamw(&numbers, &state, &g, 1, 0.9f, 0.95f, 1e-8f, 0.01f, &w, &m, &v);
    EXPECT_NEAR(w, expected[step - 1], 1e-7);
  }
}

TEST(DeviceStep, SgdTakesTheStepsOfTheFormula) {
  float w = 1;
  float b = 0;
  StepState state;
  StepNumbers numbers;
  numbers.rate = 0.1f;
  double exact_w = 1;
  double exact_b = 0;
  for (const float g : {0.5f, -0.25f}) {
    Steps().sgd(&numbers, &state, &g, 1, 0.9f, 0.01f, &w, &b);
    exact_b = 0.9 * exact_b + g;
    exact_w -= 0.1 * (exact_b + 0.01 * exact_w);
    EXPECT_NEAR(w, exact_w, 1e-7);
  }
}

TEST(DeviceStep, NothingIsUpdatedAfterItHasHalted) {
  StepNumbers numbers;
  numbers.rate = 0.1f;
  StepState state;
  state.halted = 1;
  const float g = 1;
  float w = 1;
  float m = 2;
  float v = 3;
  Steps().adamw(&numbers, &state, &g, 1, 0.9f, 0.95f, 1e-8f, 0.01f, &w, &m, &v);
  Steps().sgd(&numbers, &state, &g, 1, 0.9f, 0.01f, &w, &m);
  EXPECT_EQ(w, 1);
  EXPECT_EQ(m, 2);
  EXPECT_EQ(v, 3);
}

TEST(EmulatedDevice, HostCodeThatTouchesItsMemoryDies) {
  Device& device = EmulatedDevice();
  auto* data = static_cast<float*>(device.Allocate(64));
  EXPECT_DEATH(*static_cast<volatile float*>(data) = 1, "");
  float back = 1;
  device.CopyOut(data, &back, sizeof(back));
  EXPECT_EQ(back, 0);
  device.Free(data);
}

TEST(EmulatedDevice, LanesThatDoNotMeetAreFound) {
  const auto uneven = [](const Lanes& lanes) {
    if (lanes.lane == 0) lanes.Sum(1);
  };
  if (Lanes::count == 1) GTEST_SKIP() << "this build has one lane";
  EXPECT_DEATH(LaneTeam::Get().Run(uneven, false), "do not meet");
}

}  // namespace
}  // namespace normlab::trainer
