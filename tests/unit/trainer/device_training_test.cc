// Whole runs on an emulated GPU: the same source as on a real one, in memory that the host cannot
// touch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "server/trainer/train/data.h"
#include "server/trainer/train/device_learner.h"
#include "server/trainer/train/learner.h"
#include "server/trainer/trainer.h"
#include "tests/emulation/emulated_device.h"
#include "tests/unit/trainer/recorder.h"
#include "tests/unit/trainer/small_settings.h"

namespace normlab::trainer {
namespace {

using Series = std::map<std::string, std::vector<double>>;

TrainingSettings OnDevice(TrainingSettings settings) {
  settings.device = "emulated";
  return settings;
}

// Without what a clock says.
Series Numbers(const TrainingSettings& settings, const Emulation& emulation = {}) {
  EmulatedDevice(emulation);
  Recorder recorder;
  Train(settings, recorder);
  recorder.series.erase("step_milliseconds");
  recorder.series.erase("tokens_per_second");
  EmulatedDevice();
  return recorder.series;
}

void ExpectNear(const Series& actual, const Series& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, values] : expected) {
    const std::vector<double>& got = actual.at(name);
    ASSERT_EQ(got.size(), values.size()) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      // A key's bias moves all scores of a row alike: exact gradients of nothing are noise.
      if (name.ends_with("qkv/bias/gradient_norm")) continue;
      EXPECT_NEAR(got[i], values[i], tolerance * std::max(1e-3, std::abs(values[i])))
          << name << " at " << i;
    }
  }
}

TrainingSettings Quiet() {
  TrainingSettings settings = SmallSettings();
  settings.steps = 5;
  settings.diagnose_every = 0;
  return settings;
}

class EveryPlacement : public testing::TestWithParam<const char*> {};

TEST_P(EveryPlacement, TrainsAsOnTheHost) {
  TrainingSettings settings = Quiet();
  settings.placement = GetParam();
  settings.layers = 4;
  if (settings.placement == "admin" || settings.placement == "deepnorm") {
    settings.init = settings.placement;
  }
  if (settings.placement == "olmo2") settings.qk_norm = "rms-full";
  if (settings.placement.starts_with("hybrid")) settings.qk_norm = "rms-head";
  ExpectNear(Numbers(OnDevice(settings)), Numbers(settings), 2e-4);
}

INSTANTIATE_TEST_SUITE_P(All, EveryPlacement,
                         testing::Values("pre", "post", "post-single", "sandwich", "olmo2",
                                         "normformer", "deepnorm", "admin", "rezero", "layerscale",
                                         "b2t", "residual-dual", "mix", "hybrid", "hybrid-star",
                                         "lns", "none"),
                         [](const auto& placement) {
                           std::string name = placement.param;
                           std::erase(name, '-');
                           return name;
                         });

// One setting at a time away from the small run.
TEST(DeviceTraining, EverySettingThatRunsThereGivesTheHostsNumbers) {
  using Change = void (*)(TrainingSettings&);
  const std::map<std::string, Change> changes = {
      {"rmsnorm", [](TrainingSettings& s) { s.norm = "rmsnorm"; }},
      {"dyt", [](TrainingSettings& s) { s.norm = "dyt"; }},
      {"norm without gain", [](TrainingSettings& s) { s.norm_gain = false; }},
      {"no final norm", [](TrainingSettings& s) { s.final_norm = false; }},
      {"relu", [](TrainingSettings& s) { s.activation = "relu"; }},
      {"gelu", [](TrainingSettings& s) { s.activation = "gelu"; }},
      {"swiglu", [](TrainingSettings& s) { s.activation = "swiglu"; }},
      {"sinusoidal", [](TrainingSettings& s) { s.positions = "sinusoidal"; }},
      {"rotary", [](TrainingSettings& s) { s.positions = "rotary"; }},
      {"no positions", [](TrainingSettings& s) { s.positions = "none"; }},
      {"no bias", [](TrainingSettings& s) { s.bias = false; }},
      {"not causal", [](TrainingSettings& s) { s.causal = false; }},
      {"tied", [](TrainingSettings& s) { s.tie_embeddings = true; }},
      {"residual scale", [](TrainingSettings& s) { s.residual_scale = 0.5; }},
      {"dropout", [](TrainingSettings& s) { s.dropout = 0.2; }},
      {"sgd", [](TrainingSettings& s) { s.optimizer = "sgd"; }},
      {"decay of matrices", [](TrainingSettings& s) { s.decay_parameters = "matrices"; }},
      {"clipping", [](TrainingSettings& s) { s.clip_norm = 0.05; }},
      {"accumulation", [](TrainingSettings& s) { s.accumulate = 3; }},
      {"warmup", [](TrainingSettings& s) { s.warmup_steps = 4; }},
      {"copying", [](TrainingSettings& s) { s.data = "copy"; }},
      {"modular addition", [](TrainingSettings& s) { s.data = "modular-addition"; }},
      {"numbers", [](TrainingSettings& s) { s.data = "gaussian"; }},
      {"uniform attention",
       [](TrainingSettings& s) {
         s.attention = "uniform";
         s.heads = 1;
       }},
      {"diagnostics",
       [](TrainingSettings& s) {
         s.diagnose_every = 2;
         s.diagnose_tensors = true;
       }},
      {"probes", [](TrainingSettings& s) { s.probe_every = 3; }},
  };
  for (const auto& [name, change] : changes) {
    SCOPED_TRACE(name);
    TrainingSettings settings = Quiet();
    change(settings);
    ExpectNear(Numbers(OnDevice(settings)), Numbers(settings), 5e-4);
  }
}

// More steps than may be under way at once, some of them looked into.
TrainingSettings Long() {
  TrainingSettings settings = OnDevice(Quiet());
  settings.layers = 1;
  settings.batch_size = 2;
  settings.steps = 3 * DeviceLearner::kAhead;
  settings.diagnose_every = 100;
  return settings;
}

TEST(DeviceTraining, NeitherWaitingNorRecordingNorOrderChangesABit) {
  TrainingSettings settings = Long();
  const Series expected = Numbers(settings);
  EXPECT_EQ(Numbers(settings, {.own_thread = true}), expected);
  EXPECT_EQ(Numbers(settings, {.reverse = true}), expected);
  settings.cuda_graph = true;
  EXPECT_EQ(Numbers(settings), expected);
  EXPECT_EQ(Numbers(settings, {.own_thread = true}), expected);
  // Every step waited for.
  settings.cuda_graph = false;
  settings.diagnose_every = 1;
  EXPECT_EQ(Numbers(settings).at("loss"), expected.at("loss"));
  EXPECT_EQ(Numbers(settings).at("gradient_norm"), expected.at("gradient_norm"));
}

TEST(DeviceTraining, ARecordedStepFollowsTheScheduleTheMasksAndTheCountOfTargets) {
  TrainingSettings settings = Quiet();
  settings.steps = 12;
  settings.warmup_steps = 8;
  settings.dropout = 0.3;
  settings.data = "copy";
  settings.accumulate = 2;
  settings.clip_norm = 0.5;
  const Series host = Numbers(settings);
  settings.cuda_graph = true;
  ExpectNear(Numbers(OnDevice(settings)), host, 5e-4);
}

TEST(DeviceTraining, EveryStepIsReportedOnceAndInOrder) {
  EmulatedDevice({.own_thread = true});
  Recorder recorder;
  const TrainingSettings settings = Long();
  const Result result = Train(settings, recorder);
  EmulatedDevice();
  EXPECT_EQ(result.ending, Ending::kFinished);
  ASSERT_EQ(static_cast<int64_t>(recorder.steps.size()), settings.steps);
  for (int64_t step = 1; step <= settings.steps; ++step) {
    EXPECT_EQ(recorder.steps[static_cast<size_t>(step - 1)], step);
  }
  EXPECT_EQ(recorder.model.instruction_set, "emulated (emulated)");
}

TEST(DeviceTraining, AProbeThatIsAskedForComesWithALaterStep) {
  class Asking final : public Observer {
   public:
    void OnModel(const ModelSummary&) override {}
    void OnSeries(std::span<const std::string>) override {}
    void OnStep(int64_t step, std::span<const Observation> observations) override {
      last_ = step;
      if (observations.size() > 7) probed.push_back(step);  // the series of every step are 7
    }
    void OnCheckpoint(int64_t, const std::string&, int64_t) override {}
    Request Requested() override { return last_ == 40 ? Request::kProbe : Request::kGoOn; }
    std::vector<int64_t> probed;

   private:
    int64_t last_ = 0;
  };
  TrainingSettings settings = Long();
  settings.diagnose_every = 0;
  Asking observer;
  EmulatedDevice();
  Train(settings, observer);
  ASSERT_EQ(observer.probed.size(), 1u);
  EXPECT_GT(observer.probed[0], 40);
  EXPECT_LE(observer.probed[0], 40 + DeviceLearner::kAhead + 1);
}

TrainingSettings Diverging() {
  TrainingSettings settings = Quiet();
  settings.placement = "none";
  settings.layers = 6;
  settings.optimizer = "sgd";
  settings.learning_rate = 1e4;
  settings.steps = 60;
  return settings;
}

TEST(DeviceTraining, ADivergedRunEndsAtTheStepThatDivergedWithItsDiagnostics) {
  TrainingSettings settings = Diverging();
  settings.diagnose_every = 50;
  Recorder host;
  const Result expected = Train(settings, host);
  ASSERT_EQ(expected.ending, Ending::kDiverged);
  for (const bool own_thread : {false, true}) {
    EmulatedDevice({.own_thread = own_thread});
    Recorder recorder;
    const Result result = Train(OnDevice(settings), recorder);
    EmulatedDevice();
    EXPECT_EQ(result.ending, Ending::kDiverged);
    EXPECT_EQ(result.last_step, expected.last_step);
    EXPECT_EQ(result.reason, expected.reason);
    EXPECT_EQ(recorder.steps, host.steps);
    for (const auto& [name, values] : host.series) {
      EXPECT_EQ(recorder.series[name].size(), values.size()) << name;
    }
    EXPECT_GT(recorder.series["non_finite_count"].back(), 0);
  }
}

TEST(DeviceTraining, ARunThatMayGoOnGoesOn) {
  TrainingSettings settings = OnDevice(Diverging());
  settings.stop_on_non_finite = false;
  Recorder recorder;
  EmulatedDevice();
  EXPECT_EQ(Train(settings, recorder).ending, Ending::kFinished);
  EXPECT_EQ(static_cast<int64_t>(recorder.steps.size()), settings.steps);
}

TEST(DeviceTraining, APausedRunGoesOnBitForBit) {
  EmulatedDevice({.own_thread = true});
  TrainingSettings settings = Long();
  settings.dropout = 0.1;
  Recorder whole;
  Train(settings, whole);

  settings.checkpoint_directory = testing::TempDir() + "device_pause";
  Recorder first;
  first.pause_at = 30;
  const Result paused = Train(settings, first);
  ASSERT_EQ(paused.ending, Ending::kPaused);
  // It was under way already when the request came.
  ASSERT_GE(paused.last_step, 30);
  ASSERT_EQ(static_cast<int64_t>(first.steps.size()), paused.last_step);
  settings.resume_from =
      settings.checkpoint_directory + "/" + first.checkpoints.at(paused.last_step);
  Recorder second;
  Train(settings, second);
  EmulatedDevice();
  std::vector<double> losses = first.series["loss"];
  losses.insert(losses.end(), second.series["loss"].begin(), second.series["loss"].end());
  EXPECT_EQ(losses, whole.series["loss"]);
}

TEST(DeviceTraining, ACheckpointByTimeChangesNoBitAndIsGoneOnFrom) {
  EmulatedDevice({.own_thread = true});
  TrainingSettings settings = Long();
  Recorder whole;
  Train(settings, whole);

  settings.checkpoint_directory = testing::TempDir() + "device_age";
  settings.checkpoint_seconds = 1;
  std::chrono::steady_clock::time_point now;
  Recorder timed;
  Train(settings, timed, [&now] { return now += std::chrono::milliseconds(300); });
  EXPECT_EQ(timed.series["loss"], whole.series["loss"]);
  ASSERT_FALSE(timed.checkpoints.empty());

  const auto& [step, file] = *timed.checkpoints.rbegin();
  settings.resume_from = settings.checkpoint_directory + "/" + file;
  Recorder rest;
  Train(settings, rest);
  EmulatedDevice();
  const std::vector<double>& losses = whole.series["loss"];
  EXPECT_EQ(rest.series["loss"], std::vector<double>(losses.begin() + step, losses.end()));
}

TEST(DeviceTraining, ValidationIsThatOfTheHost) {
  TrainingSettings settings = Quiet();
  settings.data = "text";
  settings.text_file = NORMLAB_TEXTS "/alice.txt";
  settings.vocab_size = 256;
  settings.validate_every = 5;
  ExpectNear(Numbers(OnDevice(settings)), Numbers(settings), 5e-4);
}

std::string RefusalOf(TrainingSettings settings) {
  EmulatedDevice();
  try {
    Learner learner(settings);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(DeviceTraining, WhatRunsOnTheHostOnlyIsRefusedByItsName) {
  TrainingSettings settings = OnDevice(Quiet());
  settings.precision = "bf16";
  EXPECT_EQ(RefusalOf(settings),
            "precision \"bf16\" runs on the CPU only; on device \"emulated\" it is fp32");
  settings = OnDevice(Quiet());
  settings.ffn = "switch";
  EXPECT_EQ(RefusalOf(settings),
            "ffn \"switch\" runs on the CPU only; on device \"emulated\" it is dense");
  settings = OnDevice(Quiet());
  settings.model = "xl";
  settings.positions = "none";
  EXPECT_EQ(RefusalOf(settings),
            "model \"xl\" runs on the CPU only; on device \"emulated\" it is decoder");
  settings = Quiet();
  settings.cuda_graph = true;
  EXPECT_EQ(RefusalOf(settings), "cuda_graph records steps of a GPU; device is \"cpu\"");
  settings.device = "abacus";
  EXPECT_EQ(RefusalOf(settings), "device \"abacus\" is not known; known are cpu, cuda");
}

constexpr size_t kMiB = size_t{1} << 20;

// What a run holds of the device, bytes.
size_t HeldBy(const TrainingSettings& settings) {
  Device& device = EmulatedDevice();
  const Learner learner(settings);
  return device.budget().held();
}

TEST(DeviceMemory, WhatARunHoldsIsCountedAndGivenBack) {
  TrainingSettings settings = OnDevice(Quiet());
  const size_t small = HeldBy(settings);
  // Weights, gradients and two moments at the least.
  EXPECT_GT(small, 4 * sizeof(float) * static_cast<size_t>(settings.d_model * settings.vocab_size));
  settings.layers *= 2;
  EXPECT_GT(HeldBy(settings), small);
  EXPECT_EQ(EmulatedDevice().budget().held(), 0u);
}

TEST(DeviceMemory, ABudgetIsKeptToTheByte) {
  TrainingSettings settings = OnDevice(Quiet());
  settings.batch_size = 64;
  settings.sequence_length = 64;
  const auto held = static_cast<int64_t>(HeldBy(settings));
  ASSERT_GT(held, static_cast<int64_t>(2 * kMiB));
  settings.gpu_context_bytes = 100 * kMiB;
  settings.gpu_memory_bytes = held + settings.gpu_context_bytes;
  EXPECT_EQ(RefusalOf(settings), "");
  settings.gpu_memory_bytes -= 1;
  EXPECT_THAT(RefusalOf(settings),
              testing::MatchesRegex("out of GPU memory: asked for [0-9]+ MiB, held [0-9]+ MiB, its "
                                    "budget is [0-9]+ MiB, 100 MiB of them for CUDA itself; the "
                                    "GPU has [0-9]+ MiB of 1024 MiB free; give it more "
                                    "\\(--gpu-memory\\), or make batch_size or the model smaller"));
  EXPECT_EQ(EmulatedDevice().budget().held(), 0u) << "what was allocated before the refusal";
  settings.gpu_memory_bytes = 0;
  EXPECT_EQ(RefusalOf(settings), "");
}

TEST(DeviceMemory, AFullDeviceIsToldApartFromABudget) {
  Device& device = EmulatedDevice();
  const auto refusal = [&device](size_t bytes) -> std::string {
    try {
      device.Free(device.Allocate(bytes));
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  device.budget().Limit(0, 0);
  EXPECT_EQ(refusal(1500 * kMiB),
            "out of GPU memory: asked for 1500 MiB, held 0 MiB, its budget is the whole GPU; the "
            "GPU has 1024 MiB of 1024 MiB free; make batch_size or the model smaller");
  device.budget().Limit(4000 * kMiB, 1000 * kMiB);
  void* first = device.Allocate(300 * kMiB);
  EXPECT_EQ(refusal(1500 * kMiB),
            "out of GPU memory: asked for 1500 MiB, held 300 MiB, its budget is 4000 MiB, 1000 MiB "
            "of them for CUDA itself; the GPU has 724 MiB of 1024 MiB free; others hold what is "
            "missing: try again when they have ended, or ask for it alone (--exclusive)");
  device.Free(first);
  device.budget().Limit(0, 0);
}

#ifndef NORMLAB_WITH_CUDA
TEST(DeviceTraining, ABuildWithoutCudaSaysSo) {
  TrainingSettings settings = Quiet();
  settings.device = "cuda";
  EXPECT_NE(RefusalOf(settings).find("built without CUDA"), std::string::npos);
}
#endif

}  // namespace
}  // namespace normlab::trainer
