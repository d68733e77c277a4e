#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "server/trainer/train/learner.h"
#include "server/trainer/trainer.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/trainer/probe.h"
#include "tests/unit/trainer/recorder.h"
#include "tests/unit/trainer/small_settings.h"

namespace normlab::trainer {
namespace {

TEST(Train, ReportsTheModelThenEveryStep) {
  const TrainingSettings settings = SmallSettings();
  Recorder recorder;
  const Result result = Train(settings, recorder);
  EXPECT_EQ(result.ending, Ending::kFinished);
  EXPECT_EQ(result.last_step, 20);
  EXPECT_EQ(result.reason, "");
  EXPECT_EQ(recorder.model.parameter_count, Learner(settings).parameters().parameter_count());
  EXPECT_EQ(recorder.model.instruction_set, BestKernels().instruction_set);
  EXPECT_THAT(std::span(recorder.names).first(7),
              testing::ElementsAre("loss", "gradient_norm", "learning_rate", "step_milliseconds",
                                   "tokens_per_second", "non_finite_count", "spike"));
  EXPECT_EQ(recorder.names[7], "block/1/gradient_norm");
  ASSERT_EQ(recorder.steps.size(), 20u);
  EXPECT_EQ(recorder.steps.front(), 1);
  EXPECT_EQ(recorder.steps.back(), 20);
  EXPECT_LT(recorder.series["loss"].back(), recorder.series["loss"].front());
  EXPECT_THAT(recorder.series["non_finite_count"], testing::Each(0.0));
}

TEST(Train, TheSameSettingsGiveTheSameBits) {
  for (const int64_t threads : {1, 2}) {
    TrainingSettings settings = SmallSettings();
    settings.threads = threads;
    Recorder first;
    Recorder second;
    Train(settings, first);
    Train(settings, second);
    EXPECT_EQ(first.series["loss"], second.series["loss"]);
    EXPECT_EQ(first.series["gradient_norm"], second.series["gradient_norm"]);
  }
}

TEST(Train, MoreThreadsChangeOnlyTheRounding) {
  TrainingSettings settings = SmallSettings();
  Recorder one;
  Train(settings, one);
  for (const int64_t threads : {2, 4, 9}) {  // 4 does not divide the batch, 9 is more than it has
    settings.threads = threads;
    Recorder several;
    Train(settings, several);
    for (size_t i = 0; i < one.steps.size(); ++i) {
      EXPECT_NEAR(several.series["loss"][i] / one.series["loss"][i], 1.0, 1e-5);
    }
  }
}

// Threads of this process, from the kernel.
int64_t ThreadCount() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t count = 0;
    if (word == "Threads:" && status >> count) return count;
  }
  return 0;
}

class ThreadWatcher final : public Observer {
 public:
  void OnModel(const ModelSummary&) override {}
  void OnSeries(std::span<const std::string>) override {}
  void OnStep(int64_t, std::span<const Observation>) override {
    most = std::max(most, ThreadCount());
  }
  void OnCheckpoint(int64_t, const std::string&, int64_t) override {}
  Request Requested() override { return Request::kGoOn; }

  int64_t most = 0;
};

TEST(Train, UsesExactlyTheThreadsItIsGiven) {
  if (ThreadCount() != 1) GTEST_SKIP() << "an earlier test left threads behind";
  for (const int64_t threads : {1, 2}) {
    TrainingSettings settings = SmallSettings();
    settings.threads = threads;
    ThreadWatcher watcher;
    Train(settings, watcher);
    EXPECT_EQ(watcher.most, threads);
  }
}

TEST(Train, StopsAfterTheStepDuringWhichItIsAsked) {
  Recorder recorder;
  recorder.stop_after = 3;
  const Result result = Train(SmallSettings(), recorder);
  EXPECT_EQ(result.ending, Ending::kStopped);
  EXPECT_EQ(result.last_step, 3);
  EXPECT_EQ(recorder.steps.size(), 3u);
}

// A request after step 7 has step 8 measured, exactly as probe_every = 8 has.
TEST(Train, AProbeThatIsAskedForMeasuresTheNextStepOnly) {
  TrainingSettings settings = SmallSettings();
  Recorder asked;
  asked.probe_at = 7;
  EXPECT_EQ(Train(settings, asked).ending, Ending::kFinished);
  settings.probe_every = 8;
  Recorder regular;
  Train(settings, regular);
  for (const char* name : {"log_z", "block/1/attention_entropy", "block/1/attention_max_score",
                           "block/2/angular_distance", "block/2/jacobian_gain",
                           "block/2/jacobian_largest", "block/2/jacobian_distance"}) {
    ASSERT_EQ(regular.series[name].size(), 3u) << "steps 1, 8 and 16";
    EXPECT_THAT(asked.series[name], testing::ElementsAre(regular.series[name][1])) << name;
  }
  EXPECT_EQ(asked.series["loss"], regular.series["loss"]);
}

TEST(Train, ProbesAskedForBesideRegularOnesShareTheirSeries) {
  TrainingSettings settings = SmallSettings();
  settings.probe_every = 8;
  Recorder recorder;
  recorder.probe_at = 3;
  Train(settings, recorder);
  EXPECT_EQ(std::ranges::count(recorder.names, "log_z"), 1);
  EXPECT_EQ(recorder.series["log_z"].size(), 4u) << "steps 1, 4, 8 and 16";
}

// Removes a file after the first step.
class Remover final : public Observer {
 public:
  Remover(std::string file, Recorder& recorder) : file_(std::move(file)), recorder_(recorder) {}
  void OnModel(const ModelSummary& summary) override { recorder_.OnModel(summary); }
  void OnSeries(std::span<const std::string> names) override { recorder_.OnSeries(names); }
  void OnStep(int64_t step, std::span<const Observation> observations) override {
    recorder_.OnStep(step, observations);
    std::filesystem::remove(file_);
  }
  void OnCheckpoint(int64_t, const std::string&, int64_t) override {}
  Request Requested() override { return recorder_.Requested(); }

 private:
  const std::string file_;
  Recorder& recorder_;
};

TEST(Train, AProbeThatCannotBeMadeEndsNoRun) {
  const fakes::TempDir folder;
  TrainingSettings settings = SmallSettings();
  settings.data = "text";
  settings.vocab_size = 128;
  settings.text_file = folder.path() / "text";
  std::ofstream(settings.text_file) << std::string(100, 'a') << std::string(100, 'b');
  Recorder recorder;
  recorder.probe_at = 3;
  Remover remover(settings.text_file, recorder);
  EXPECT_EQ(Train(settings, remover).ending, Ending::kFinished);
  EXPECT_EQ(recorder.steps.size(), 20u);
  EXPECT_FALSE(recorder.series.contains("log_z"));
}

TEST(Train, ADivergedRunKeepsEveryPointIncludingTheBadStep) {
  TrainingSettings settings = SmallSettings();
  settings.learning_rate = 1e38;
  Recorder recorder;
  const Result result = Train(settings, recorder);
  EXPECT_EQ(result.ending, Ending::kDiverged);
  EXPECT_EQ(result.last_step, recorder.steps.back());
  EXPECT_THAT(result.reason, testing::HasSubstr("at step " + std::to_string(result.last_step)));
  EXPECT_FALSE(std::isfinite(recorder.series["loss"].back()) &&
               std::isfinite(recorder.series["gradient_norm"].back()));
  EXPECT_GT(recorder.series["non_finite_count"].back(), 0.0);
  EXPECT_TRUE(std::isfinite(recorder.series["loss"].front()));
}

TEST(Train, GoesOnThroughNonFiniteNumbersIfToldSo) {
  TrainingSettings settings = SmallSettings();
  settings.learning_rate = 1e38;
  settings.stop_on_non_finite = false;
  Recorder recorder;
  EXPECT_EQ(Train(settings, recorder).ending, Ending::kFinished);
  EXPECT_EQ(recorder.steps.size(), 20u);
}

TEST(Train, WhatItCannotTrainIsRefusedByName) {
  using Change = std::function<void(TrainingSettings&)>;
  const std::pair<const char*, Change> cases[] = {
      {"placement", [](TrainingSettings& s) { s.placement = "middle"; }},
      {"norm", [](TrainingSettings& s) { s.norm = "batchnorm"; }},
      {"heads", [](TrainingSettings& s) { s.heads = 5; }},
      {"layers", [](TrainingSettings& s) { s.layers = 0; }},
      {"optimizer", [](TrainingSettings& s) { s.optimizer = "lion"; }},
      {"schedule", [](TrainingSettings& s) { s.schedule = "zigzag"; }},
      {"warmup_steps",
       [](TrainingSettings& s) {
         s.schedule = "noam";
         s.warmup_steps = 0;
       }},
      {"learning_rate_floor",
       [](TrainingSettings& s) {
         s.schedule = "cosine";
         s.learning_rate_floor = 1;
       }},
      {"accumulate", [](TrainingSettings& s) { s.accumulate = 0; }},
      {"validate_every", [](TrainingSettings& s) { s.validate_every = 5; }},
      {"data", [](TrainingSettings& s) { s.data = "tea leaves"; }},
      {"threads", [](TrainingSettings& s) { s.threads = 0; }},
      {"seed", [](TrainingSettings& s) { s.seed = -117; }},
      {"decay_parameters", [](TrainingSettings& s) { s.decay_parameters = "some"; }},
  };
  for (const auto& [name, change] : cases) {
    TrainingSettings settings = SmallSettings();
    change(settings);
    Recorder recorder;
    try {
      Train(settings, recorder);
      ADD_FAILURE() << name << " was accepted";
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(name));
    }
  }
}

TEST(Learner, NonFiniteGradientsAreCountedAndKeptInTheNorm) {
  const TrainingSettings settings = SmallSettings();
  Learner learner(settings);
  Batch batch;
  batch.tokens.assign(48, 1);
  batch.targets.assign(48, 1);
  learner.ComputeGradients(1, {&batch, 1});
  EXPECT_TRUE(std::isfinite(learner.GradientNorm()));
  EXPECT_EQ(learner.NonFiniteCount(), 0);
  const Parameter& head = learner.parameters().all().back();
  learner.weights()[static_cast<size_t>(head.offset)] = std::numeric_limits<float>::infinity();
  learner.ComputeGradients(1, {&batch, 1});
  EXPECT_FALSE(std::isfinite(learner.GradientNorm()));
  EXPECT_GT(learner.NonFiniteCount(), 0);
}

TEST(EngineVersion, IsThatOfTorch) { EXPECT_THAT(EngineVersion(), testing::StartsWith("2.")); }

}  // namespace
}  // namespace normlab::trainer
