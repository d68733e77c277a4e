#include "server/trainer/model/admin_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/trainer/model/initialization.h"
#include "server/trainer/model/model.h"
#include "server/trainer/train/data.h"
#include "server/trainer/trainer.h"
#include "tests/unit/trainer/recorder.h"
#include "tests/unit/trainer/small_settings.h"

namespace normlab::trainer {
namespace {

TrainingSettings AdminSettings() {
  TrainingSettings settings = SmallSettings();
  settings.placement = "admin";
  settings.init = "admin";
  settings.final_norm = false;
  settings.layers = 5;
  settings.dropout = 0.3;  // profiling is without
  return settings;
}

Batch FirstBatch(const TrainingSettings& settings) {
  Batch batch;
  MakeDataSource(settings)->Next(batch);
  return batch;
}

double Variance(Program& program, Value value, double factor) {
  const float* data = program.Data(value);
  const std::vector<double> values(data, data + value.rows() * value.width());
  double mean = 0;
  for (const double v : values) mean += factor * v;
  mean /= static_cast<double>(values.size());
  double squares = 0;
  for (const double v : values) squares += (factor * v - mean) * (factor * v - mean);
  return squares / static_cast<double>(values.size());
}

// The recursion again, over the values that a plain forward pass computes from the result.
TEST(AdminProfile, EveryOmegaIsTheDeviationOfAllThatIsAlreadyInTheStream) {
  const TrainingSettings settings = AdminSettings();
  ParameterTable parameters;
  Program program(parameters, settings.batch_size, settings.sequence_length);
  const Model model = RecordModel(settings, program);
  Buffer weights(parameters.buffer_size());
  Buffer gradients(parameters.buffer_size());
  InitializeParameters(settings, parameters, weights.span());
  program.Finish(weights.data(), gradients.data());
  const Batch batch = FirstBatch(settings);
  ProfileAdmin(settings, parameters, weights.span(), batch);

  program.inputs() = batch;
  program.set_training(false);
  program.Forward();
  double r = 1;
  int sums = 0;
  for (const BlockTaps& block : model.blocks) {
    for (size_t i = 0; i < 2; ++i, ++sums) {
      const auto id = parameters.Find(block.path + (i == 0 ? "/attention_omega" : "/mlp_omega"));
      for (int64_t c = 0; c < settings.d_model; ++c) {
        EXPECT_NEAR(weights.data()[parameters[id].offset + c], r, 1e-6 * r);
      }
      r = std::sqrt(Variance(program, block.scaled_sums[i].x, r) +
                    Variance(program, block.branches[i], 1));
    }
  }
  EXPECT_EQ(sums, 10);
  EXPECT_GT(r, 1.5);  // it grows with the number of branches
}

TEST(AdminProfile, ChangesNothingButTheOmegas) {
  const TrainingSettings settings = AdminSettings();
  ParameterTable parameters;
  Program program(parameters, settings.batch_size, settings.sequence_length);
  RecordModel(settings, program);
  std::vector<float> before(static_cast<size_t>(parameters.buffer_size()));
  InitializeParameters(settings, parameters, before);
  Buffer after(parameters.buffer_size());
  std::ranges::copy(before, after.data());
  ProfileAdmin(settings, parameters, after.span(), FirstBatch(settings));
  for (const Parameter& parameter : parameters.all()) {
    const bool omega = parameter.path.ends_with("_omega");
    const auto offset = static_cast<size_t>(parameter.offset);
    const bool same = std::equal(after.data() + offset, after.data() + offset + parameter.count,
                                 before.begin() + parameter.offset);
    // The first one stays at 1.
    EXPECT_EQ(same, !omega || parameter.path == "block_0/attention_omega") << parameter.path;
  }
}

std::vector<double> Losses(TrainingSettings settings) {
  Recorder recorder;
  Train(settings, recorder);
  return recorder.series["loss"];
}

TEST(AdminProfile, TrainingProfilesOnItsFirstBatchWithoutConsumingIt) {
  TrainingSettings settings = AdminSettings();
  settings.dropout = 0;
  settings.steps = 1;
  // The loss of the first step, by hand: profiled weights over the first batch.
  ParameterTable parameters;
  Program program(parameters, settings.batch_size, settings.sequence_length);
  RecordModel(settings, program);
  Buffer weights(parameters.buffer_size());
  Buffer gradients(parameters.buffer_size());
  InitializeParameters(settings, parameters, weights.span());
  program.Finish(weights.data(), gradients.data());
  const Batch batch = FirstBatch(settings);
  program.inputs() = batch;
  program.Forward();
  const double unprofiled = program.loss();
  ProfileAdmin(settings, parameters, weights.span(), batch);
  program.Forward();
  EXPECT_EQ(Losses(settings), std::vector<double>{program.loss()});
  EXPECT_NE(program.loss(), unprofiled);
}

TEST(AdminProfile, IsTheSameForEveryNumberOfThreads) {
  TrainingSettings settings = AdminSettings();
  settings.steps = 1;
  const double one = Losses(settings)[0];
  settings.threads = 3;
  EXPECT_NEAR(Losses(settings)[0], one, 1e-6);
}

}  // namespace
}  // namespace normlab::trainer
