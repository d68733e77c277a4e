// Checkpoints that come by time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "server/trainer/trainer.h"
#include "tests/fakes/disk_full.h"
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
    if (step == room_after_step) disk_full.reset();
    if (step == 1) std::filesystem::remove_all(folder_to_remove);
  }
  void OnCheckpoint(int64_t step, const std::string& file, int64_t bytes) override {
    recorder.OnCheckpoint(step, file, bytes);
  }
  Request Requested() override {
    const Request requested = recorder.Requested();
    if (requested != Request::kPause && recorder.steps.back() != 10) return requested;
    ++questions;  // it asks while it waits
    if (questions == room_after_question) disk_full.reset();
    now += seconds(1);
    return questions == stop_at_question ? Request::kStop : requested;
  }

  MonotonicClock Clock() {
    return [this] { return now; };
  }

  Recorder recorder;
  int64_t slow_step = 0;
  std::optional<fakes::DiskFull> disk_full;
  int64_t room_after_step = 0;
  std::filesystem::path folder_to_remove;
  int room_after_question = 0, stop_at_question = 0, questions = 0;
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

TEST_F(CheckpointAgeTest, AFullDiskEndsNoRunAndOneThatIsOwedComesWhenThereIsRoom) {
  observer_.disk_full.emplace();
  observer_.room_after_step = 8;
  EXPECT_EQ(Train(settings_, observer_, observer_.Clock()).ending, Ending::kFinished);
  EXPECT_THAT(observer_.recorder.checkpoints, ElementsAre(Key(9))) << "tried behind 3, 6 and 9";
  EXPECT_EQ(observer_.recorder.steps.size(), 10U);
  EXPECT_THAT(Files(), ElementsAre("step-000000000009.safetensors")) << "no half file is left";
}

TEST_F(CheckpointAgeTest, OneThatIsOwedIsNotTriedAtEveryStepThatHasOne) {
  settings_.checkpoint_every = 1;
  settings_.checkpoint_seconds = 0;
  observer_.disk_full.emplace();
  observer_.room_after_step = 2;
  Train(settings_, observer_, observer_.Clock());
  EXPECT_EQ(observer_.recorder.checkpoints.begin()->first, 4) << "30 s behind the first";
  EXPECT_EQ(observer_.recorder.checkpoints.size(), 7U) << "and then at every step";
}

TEST_F(CheckpointAgeTest, TheLastWeightsWaitForRoom) {
  settings_.checkpoint_every = 10;
  observer_.disk_full.emplace();
  observer_.room_after_question = 7;
  EXPECT_EQ(Train(settings_, observer_, observer_.Clock()).ending, Ending::kFinished);
  EXPECT_THAT(observer_.recorder.checkpoints, ElementsAre(Key(10)));
  EXPECT_LE(observer_.questions, 9) << "within 2 s";
}

TEST_F(CheckpointAgeTest, ARunThatWaitsWithItsLastWeightsCanBeStopped) {
  settings_.checkpoint_every = 10;
  observer_.disk_full.emplace();
  observer_.stop_at_question = 7;
  const Result result = Train(settings_, observer_, observer_.Clock());
  observer_.disk_full.reset();
  EXPECT_EQ(result.ending, Ending::kStopped);
  EXPECT_EQ(result.last_step, 10);
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(CheckpointAgeTest, APauseWaitsForRoom) {
  observer_.recorder.pause_at = 2;
  observer_.disk_full.emplace();
  observer_.room_after_question = 7;
  const Result result = Train(settings_, observer_, observer_.Clock());
  EXPECT_EQ(result.ending, Ending::kPaused);
  EXPECT_EQ(result.last_step, 2);
  EXPECT_THAT(observer_.recorder.checkpoints, ElementsAre(Key(2)));
  EXPECT_LE(observer_.questions, 9) << "within 2 s";
}

TEST_F(CheckpointAgeTest, APauseThatWaitsForRoomCanBeStopped) {
  observer_.recorder.pause_at = 2;
  observer_.disk_full.emplace();
  observer_.stop_at_question = 7;
  EXPECT_EQ(Train(settings_, observer_, observer_.Clock()).ending, Ending::kStopped);
  observer_.disk_full.reset();
  EXPECT_THAT(observer_.recorder.checkpoints, IsEmpty());
}

TEST_F(CheckpointAgeTest, AFolderThatIsGoneIsMadeAnew) {
  observer_.recorder.pause_at = 2;
  observer_.folder_to_remove = settings_.checkpoint_directory;
  EXPECT_EQ(Train(settings_, observer_, observer_.Clock()).ending, Ending::kPaused);
  EXPECT_THAT(Files(), ElementsAre("step-000000000002.safetensors"));
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
