#include "server/trainer/train/diagnostics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "server/trainer/train/data.h"
#include "tests/unit/trainer/recorder.h"
namespace normlab::trainer {
namespace {

TrainingSettings SmallSettings() {
  TrainingSettings settings;
  settings.layers = 3;
  settings.d_model = 32;
  settings.ffn_width = 64;
  settings.sequence_length = 8;
  settings.batch_size = 5;
  settings.threads = 2;
  settings.steps = 12;
  settings.diagnose_every = 5;
  settings.diagnose_tensors = true;
  return settings;
}

double NormOf(std::span<const float> values) {
  double squares = 0;
  for (const float x : values) squares += static_cast<double>(x) * x;
  return std::sqrt(squares);
}

class DiagnosticsTest : public testing::Test {
 protected:
  DiagnosticsTest() : learner_(settings_), diagnostics_(settings_, learner_) {
    std::vector<Batch> batches(1);
    MakeDataSource(settings_)->Next(batches[0]);
    learner_.ComputeGradients(1, batches);
    before_.assign(learner_.weights().begin(), learner_.weights().end());
    diagnostics_.BeforeUpdate();
    learner_.Update(1, 1e-2);
    const std::vector<double>& values = diagnostics_.AfterUpdate();
    EXPECT_EQ(values.size(), diagnostics_.names().size());
    for (size_t i = 0; i < values.size(); ++i) named_[diagnostics_.names()[i]] = values[i];
  }

  double Squares(const std::string& prefix, std::span<const float> buffer) {
    double squares = 0;
    for (const Parameter& p : learner_.parameters().all()) {
      if (!p.path.starts_with(prefix)) continue;
      const double norm =
          NormOf(buffer.subspan(static_cast<size_t>(p.offset), static_cast<size_t>(p.count)));
      squares += norm * norm;
    }
    return squares;
  }

  const TrainingSettings settings_ = SmallSettings();
  Learner learner_;
  Diagnostics diagnostics_;
  std::vector<float> before_;
  std::map<std::string, double> named_;
};

TEST_F(DiagnosticsTest, NormsAreThoseOfTheBlocksParameters) {
  for (int block = 0; block < 3; ++block) {
    const std::string path = "block_" + std::to_string(block) + "/";
    const std::string name = "block/" + std::to_string(block + 1) + "/";
    const double weights = std::sqrt(Squares(path, before_));
    EXPECT_NEAR(named_.at(name + "gradient_norm"), std::sqrt(Squares(path, learner_.gradients())),
                1e-9);
    EXPECT_NEAR(named_.at(name + "weight_norm"), weights, 1e-9 * weights);
    std::vector<float> change(before_.size());
    for (size_t i = 0; i < change.size(); ++i) change[i] = learner_.weights()[i] - before_[i];
    EXPECT_NEAR(named_.at(name + "update_ratio"), std::sqrt(Squares(path, change)) / weights, 1e-9);
    EXPECT_GT(named_.at(name + "update_ratio"), 0);
  }
}

TEST_F(DiagnosticsTest, TensorsTogetherHaveTheWholeNorm) {
  double squares = 0;
  for (const Parameter& p : learner_.parameters().all()) {
    squares += std::pow(named_.at("tensor/" + p.path + "/gradient_norm"), 2);
  }
  EXPECT_NEAR(std::sqrt(squares), learner_.GradientNorm(), 1e-9);
}

TEST_F(DiagnosticsTest, StreamIsThatOfAllSequences) {
  for (size_t block = 0; block < 3; ++block) {
    double squares = 0;
    double input_squares = 0;
    double branch_squares = 0;
    double largest = 0;
    double count = 0;
    for (size_t share = 0; share < learner_.share_count(); ++share) {
      Program& program = learner_.program(share);
      const BlockTaps& taps = learner_.model(share).blocks[block];
      const int64_t n = program.rows() * settings_.d_model;
      for (int64_t i = 0; i < n; ++i) {
        const double x = program.Data(taps.output)[i];
        squares += x * x;
        largest = std::max(largest, std::abs(x));
        input_squares += std::pow(program.Data(taps.input)[i], 2);
        branch_squares += std::pow(program.Data(taps.branches[1])[i], 2);
      }
      count += static_cast<double>(n);
    }
    EXPECT_EQ(count, 5 * 8 * 32);
    const std::string name = "block/" + std::to_string(block + 1) + "/";
    EXPECT_NEAR(named_.at(name + "stream_rms"), std::sqrt(squares / count), 1e-6);
    EXPECT_EQ(named_.at(name + "stream_max"), largest);
    EXPECT_NEAR(named_.at(name + "mlp_ratio"), std::sqrt(branch_squares / input_squares), 1e-6);
    EXPECT_GT(named_.at(name + "attention_ratio"), 0);
  }
}

TEST(Diagnostics, LookingChangesNoBitOfTheTraining) {
  for (const char* placement : {"pre", "post", "admin", "residual-dual", "hybrid", "lns"}) {
    TrainingSettings settings = SmallSettings();
    settings.placement = placement;
    settings.final_norm = settings.placement == "pre";
    settings.probe_every = 4;
    Recorder looked;
    Train(settings, looked);
    settings.diagnose_every = 0;
    settings.probe_every = 0;
    Recorder blind;
    Train(settings, blind);
    for (const char* name : {"loss", "gradient_norm"}) {
      EXPECT_EQ(looked.series.at(name), blind.series.at(name));
    }
    EXPECT_EQ(blind.series.size(), 7u);
    // Steps 1, 5 and 10; 1, 4, 8 and 12.
    EXPECT_EQ(looked.series.at("block/3/gradient_norm").size(), 3u);
    EXPECT_EQ(looked.series.at("block/3/jacobian_gain").size(), 4u);
    EXPECT_EQ(looked.series.at("log_z").size(), 4u);
  }
}

}  // namespace
}  // namespace normlab::trainer
