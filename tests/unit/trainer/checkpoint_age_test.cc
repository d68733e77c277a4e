// Checkpoints that come by time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "server/trainer/trainer.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/trainer/recorder.h"
#include "tests/unit/trainer/small_settings.h"

namespace normlab::trainer {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;

// A recorder for which every step takes as long as it says.
class SlowRecorder final : public Observer {
 public:
  void OnModel(const ModelSummary& model) override { recorder.OnModel(model); }
  void OnSeries(std::span<const std::string> names) override { recorder.OnSeries(names); }
  void OnStep(int64_t step, std::span<const Observation> observations) override {
    recorder.OnStep(step, observations);
    now += seconds(step == slow_step ? 1000 : 10);
  }
  void OnCheckpoint(int64_t step, const std::string& file, int64_t bytes) override {
    recorder.OnCheckpoint(step, file, bytes);
  }
  Request Requested() override { return recorder.Requested(); }

  MonotonicClock Clock() {
    return [this] { return now; };
  }

  Recorder recorder;
  int64_t slow_step = 0;
  steady_clock::time_point now{};
};

class CheckpointAgeTest : public testing::Test {
 protected:
  CheckpointAgeTest() {
    settings_.checkpoint_directory = folder_.path() / "checkpoints";
    settings_.steps = 10;
    settings_.checkpoint_seconds = 30;  // three steps
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(settings_.checkpoint_directory)) {
      files.push_back(entry.path().filename());
    }
    return files;
  }

  fakes::TempDir folder_;
  TrainingSettings settings_ = SmallSettings();
  SlowRecorder observer_;
};

TEST_F(CheckpointAgeTest, OneComesAfterTheStepAtWhichTheLatestIsTooOld) {
  Train(settings_, observer_, observer_.Clock());
  EXPECT_THAT(observer_.recorder.checkpoints, ElementsAre(Key(3), Key(6), Key(9)));
  EXPECT_EQ(Files().size(), 2U) << "keep_checkpoints counts them too";
}

TEST_F(CheckpointAgeTest, ALongStepIsFollowedByOneOnly) {
  settings_.steps = 5;
  observer_.slow_step = 2;
  Train(settings_, observer_, observer_.Clock());
  EXPECT_THAT(observer_.recorder.checkpoints, ElementsAre(Key(2)));
}

TEST_F(CheckpointAgeTest, AnyCheckpointMakesTheLatestYoung) {
  settings_.checkpoint_every = 2;
  Train(settings_, observer_, observer_.Clock());
  EXPECT_THAT(observer_.recorder.checkpoints, ElementsAre(Key(2), Key(4), Key(6), Key(8), Key(10)));
}

TEST_F(CheckpointAgeTest, ZeroIsNever) {
  settings_.checkpoint_seconds = 0;
  Train(settings_, observer_, observer_.Clock());
  EXPECT_THAT(observer_.recorder.checkpoints, IsEmpty());
}

TEST_F(CheckpointAgeTest, TheLastStepHasNothingToComeBackFor) {
  settings_.steps = 3;
  Train(settings_, observer_, observer_.Clock());
  EXPECT_THAT(observer_.recorder.checkpoints, IsEmpty());
}

TEST_F(CheckpointAgeTest, ChangesNoBitOfTheTraining) {
  settings_.dropout = 0.1;
  Train(settings_, observer_, observer_.Clock());
  ASSERT_FALSE(observer_.recorder.checkpoints.empty());
  settings_.checkpoint_seconds = 0;
  Recorder without;
  Train(settings_, without);
  for (const char* name : {"loss", "gradient_norm"}) {
    EXPECT_EQ(observer_.recorder.series[name], without.series[name]) << name;
  }
}

TEST_F(CheckpointAgeTest, TrainingGoesOnFromOne) {
  Train(settings_, observer_, observer_.Clock());
  TrainingSettings rest = settings_;
  rest.checkpoint_seconds = 0;
  rest.resume_from = settings_.checkpoint_directory + "/" + observer_.recorder.checkpoints[9];
  Recorder recorder;
  Train(rest, recorder);
  EXPECT_EQ(recorder.series["loss"], std::vector<double>{observer_.recorder.series["loss"].back()});
}

}  // namespace
}  // namespace normlab::trainer
