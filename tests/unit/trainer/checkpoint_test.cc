// Runs that end and go on: exactly, or not at all.
#include "server/trainer/train/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "server/trainer/model/placement/placement.h"
#include "server/trainer/train/safetensors.h"
#include "tests/fakes/disk_full.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/trainer/recorder.h"
#include "tests/unit/trainer/small_settings.h"

namespace normlab::trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using Change = std::function<void(TrainingSettings&)>;

// A text with some order in it.
std::string ExampleText() {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += static_cast<char>('a' + (i * i + i / 7) % 23);
  return text;
}

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() {
    std::ofstream(TextFile()) << ExampleText();
    settings_.checkpoint_directory = folder_.path() / "checkpoints";
  }

  std::string TextFile() const { return folder_.path() / "text.txt"; }

  std::string FileOf(int64_t step) const {
    std::string digits = std::to_string(step);
    digits.insert(0, 12 - digits.size(), '0');
    return settings_.checkpoint_directory + "/step-" + digits + ".safetensors";
  }

  // What Train says it cannot do.
  static std::string Refusal(const TrainingSettings& settings) {
    Recorder recorder;
    try {
      Train(settings, recorder);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "accepted";
  }

  fakes::TempDir folder_;
  TrainingSettings settings_ = SmallSettings();
};

// --- Exact resume --------------------------------------------------------------------------------

struct Case {
  std::string name;
  Change change;
};

void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

Change Set(std::string TrainingSettings::*member, const char* value) {
  return [=](TrainingSettings& s) { s.*member = value; };
}

// One line for each thing that a checkpoint must not forget.
const Case kCases[] = {
    {"Arithmetic", [](TrainingSettings&) {}},
    {"Copy", Set(&TrainingSettings::data, "copy")},
    {"Reverse", Set(&TrainingSettings::data, "reverse")},
    {"ModularAddition", Set(&TrainingSettings::data, "modular-addition")},
    {"Gaussian", Set(&TrainingSettings::data, "gaussian")},
    {"TextShuffled", Set(&TrainingSettings::data, "text")},
    {"TextSequential",
     [](TrainingSettings& s) {
       s.data = "text";
       s.text_order = "sequential";
     }},
    {"TextCharacters",
     [](TrainingSettings& s) {
       s.data = "text";
       s.text_unit = "characters";
       s.vocab_size = 23;
     }},
    {"Validated",
     [](TrainingSettings& s) {
       s.data = "text";
       s.validate_every = 3;
     }},
    {"Sgd",
     [](TrainingSettings& s) {
       s.optimizer = "sgd";
       s.learning_rate = 0.05;
     }},
    {"AccumulateTwo", [](TrainingSettings& s) { s.accumulate = 2; }},
    {"AccumulateThreeSequential",
     [](TrainingSettings& s) {
       s.accumulate = 3;
       s.data = "text";
       s.text_order = "sequential";
     }},
    {"WarmupAndCosine",
     [](TrainingSettings& s) {
       s.schedule = "cosine";
       s.warmup_steps = 60;
     }},
    {"Clipped", [](TrainingSettings& s) { s.clip_norm = 0.3; }},
    {"Dropout", [](TrainingSettings& s) { s.dropout = 0.2; }},
    {"DropoutAccumulateTwo",
     [](TrainingSettings& s) {
       s.dropout = 0.2;
       s.accumulate = 2;
     }},
    {"TiedEmbeddings", [](TrainingSettings& s) { s.tie_embeddings = true; }},
    {"PostNorm",
     [](TrainingSettings& s) {
       s.placement = "post";
       s.final_norm = false;
     }},
    {"TransformerXl",
     [](TrainingSettings& s) {
       s.model = "xl";
       s.positions = "none";
       s.memory_length = 11;
       s.data = "text";
       s.text_order = "sequential";
     }},
    {"Switch", Set(&TrainingSettings::ffn, "switch")},
    {"EncoderDecoder",
     [](TrainingSettings& s) {
       s.model = "encdec";
       s.decoder_layers = 1;
       s.data = "reverse";
     }},
    {"Bf16", Set(&TrainingSettings::precision, "bf16")},
    {"RotarySwiglu",
     [](TrainingSettings& s) {
       s.positions = "rotary";
       s.activation = "swiglu";
     }},
};

class ResumeTest : public CheckpointTest,
                   public testing::WithParamInterface<std::tuple<Case, int64_t>> {
 protected:
  ResumeTest() {
    settings_.steps = 100;
    settings_.threads = std::get<int64_t>(GetParam());
    std::get<Case>(GetParam()).change(settings_);
    if (settings_.data == "text") settings_.text_file = TextFile();
    if (settings_.data == "text" && settings_.text_unit == "bytes") settings_.vocab_size = 128;
  }
};

INSTANTIATE_TEST_SUITE_P(All, ResumeTest,
                         testing::Combine(testing::ValuesIn(kCases), testing::Values(1, 2)),
                         [](const auto& info) {
                           return std::get<Case>(info.param).name + "On" +
                                  std::to_string(std::get<int64_t>(info.param)) + "Threads";
                         });

// Every placement has its own parameters.
TEST_F(CheckpointTest, EveryPlacementGoesOnBitForBit) {
  for (const std::string_view placement : PlacementNames()) {
    settings_.placement = placement;
    settings_.checkpoint_directory = folder_.path() / placement;
    settings_.steps = 10;
    settings_.resume_from.clear();
    Recorder straight;
    Train(settings_, straight);
    Recorder before;
    before.pause_at = 5;
    Train(settings_, before);
    settings_.resume_from = FileOf(5);
    Recorder after;
    Train(settings_, after);
    std::vector<double> joined = before.series["loss"];
    joined.insert(joined.end(), after.series["loss"].begin(), after.series["loss"].end());
    EXPECT_EQ(joined, straight.series["loss"]) << placement;
  }
}

// The names that a run's numbers have, without those that measure time.
std::vector<std::string> ExactSeries(const Recorder& recorder) {
  std::vector<std::string> names;
  for (const std::string& name : recorder.names) {
    if (name != "step_milliseconds" && name != "tokens_per_second") names.push_back(name);
  }
  return names;
}

// The bytes of every tensor in a checkpoint: weights, moments, data, losses.
std::map<std::string, std::vector<uint64_t>> Contents(const std::string& path) {
  const SafetensorsFile file(path);
  std::map<std::string, std::vector<uint64_t>> contents;
  for (const auto& [name, tensor] : file.tensors()) {
    std::vector<uint64_t>& words = contents[name];
    if (tensor.dtype == "F32") {
      std::vector<float> values((tensor.end - tensor.begin) / 4);
      file.Read(name, values);
      for (const float value : values) words.push_back(std::bit_cast<uint32_t>(value));
    } else if (tensor.dtype == "F64") {
      std::vector<double> values((tensor.end - tensor.begin) / 8);
      file.Read(name, values);
      for (const double value : values) words.push_back(std::bit_cast<uint64_t>(value));
    } else {
      words.resize((tensor.end - tensor.begin) / 8);
      file.Read(name, words);
    }
  }
  return contents;
}

TEST_P(ResumeTest, AProbeInTheMiddleChangesNoBit) {
  settings_.steps = settings_.checkpoint_every = 24;
  Recorder unprobed;
  Train(settings_, unprobed);
  const auto contents = Contents(FileOf(24));
  settings_.checkpoint_directory = folder_.path() / "second";
  Recorder probed;
  probed.probe_at = 10;
  EXPECT_EQ(Train(settings_, probed).ending, Ending::kFinished);

  for (const std::string& name : ExactSeries(unprobed)) {
    EXPECT_EQ(probed.series[name], unprobed.series[name]) << name;
  }
  EXPECT_EQ(Contents(FileOf(24)), contents);
  EXPECT_FALSE(unprobed.series.contains("log_z"));
  ASSERT_EQ(probed.series["log_z"].size(), 1u);
  EXPECT_TRUE(std::isfinite(probed.series["log_z"].front()));
}

TEST_P(ResumeTest, HundredStepsAreFiftyAndFiftyBitForBit) {
  settings_.checkpoint_every = 100;
  Recorder straight;
  EXPECT_EQ(Train(settings_, straight).ending, Ending::kFinished);
  const auto contents = Contents(FileOf(100));

  settings_.checkpoint_directory = folder_.path() / "second";
  Recorder before;
  before.pause_at = 50;
  const Result paused = Train(settings_, before);
  EXPECT_EQ(paused.ending, Ending::kPaused);
  EXPECT_EQ(paused.last_step, 50);
  settings_.resume_from = FileOf(50);
  Recorder after;
  const Result finished = Train(settings_, after);
  EXPECT_EQ(finished.ending, Ending::kFinished);
  EXPECT_EQ(finished.last_step, 100);

  EXPECT_EQ(before.steps.size(), 50u);
  ASSERT_EQ(after.steps.size(), 50u);
  EXPECT_EQ(after.steps.front(), 51);
  for (const std::string& name : ExactSeries(straight)) {
    std::vector<double> joined = before.series[name];
    joined.insert(joined.end(), after.series[name].begin(), after.series[name].end());
    EXPECT_EQ(joined, straight.series[name]) << name;
  }
  EXPECT_EQ(Contents(FileOf(100)), contents);
}

TEST_P(ResumeTest, TheSameSeedGivesTheSameBitsAndAnotherOneOthers) {
  settings_.steps = 20;
  settings_.checkpoint_directory.clear();
  Recorder first;
  Recorder again;
  Train(settings_, first);
  Train(settings_, again);
  for (const std::string& name : ExactSeries(first)) {
    EXPECT_EQ(first.series[name], again.series[name]) << name;
  }
  settings_.seed = 8;
  Recorder other;
  Train(settings_, other);
  EXPECT_NE(first.series["loss"], other.series["loss"]);
}

// --- When and what is written --------------------------------------------------------------------

TEST_F(CheckpointTest, ComeEverySoManyStepsAndAtTheLastAndTheLatestAreKept) {
  settings_.steps = 17;
  settings_.checkpoint_every = 5;
  settings_.keep_checkpoints = 2;
  Recorder recorder;
  Train(settings_, recorder);
  EXPECT_THAT(recorder.checkpoints, ElementsAre(Pair(5, "step-000000000005.safetensors"),
                                                Pair(10, "step-000000000010.safetensors"),
                                                Pair(15, "step-000000000015.safetensors"),
                                                Pair(17, "step-000000000017.safetensors")));
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(settings_.checkpoint_directory)) {
    files.push_back(entry.path().filename());
  }
  EXPECT_THAT(files, testing::UnorderedElementsAre("step-000000000015.safetensors",
                                                   "step-000000000017.safetensors"));
  struct stat info {};
  ASSERT_EQ(stat(FileOf(17).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  ASSERT_EQ(stat(settings_.checkpoint_directory.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
}

TEST_F(CheckpointTest, NoneIsWrittenWithoutAFolderOrAReason) {
  settings_.steps = 4;
  Recorder recorder;
  Train(settings_, recorder);
  EXPECT_TRUE(recorder.checkpoints.empty());
  settings_.checkpoint_directory.clear();
  settings_.checkpoint_every = 1;
  EXPECT_EQ(Train(settings_, recorder).ending, Ending::kFinished);
  EXPECT_TRUE(recorder.checkpoints.empty());
  recorder.steps.clear();
  recorder.pause_at = 2;
  const Result result = Train(settings_, recorder);
  EXPECT_EQ(result.ending, Ending::kStopped);
  EXPECT_EQ(result.last_step, 2);
}

// Notes the order of what it is told, and whether the file is there by then.
class OrderWatcher final : public Observer {
 public:
  explicit OrderWatcher(std::string folder) : folder_(std::move(folder)) {}
  void OnModel(const ModelSummary&) override {}
  void OnSeries(std::span<const std::string>) override {}
  void OnStep(int64_t step, std::span<const Observation>) override {
    events.push_back("step " + std::to_string(step));
  }
  void OnCheckpoint(int64_t step, const std::string& file, int64_t bytes) override {
    EXPECT_EQ(std::filesystem::file_size(folder_ + "/" + file), static_cast<uintmax_t>(bytes));
    events.push_back("checkpoint " + std::to_string(step));
  }
  Request Requested() override { return Request::kGoOn; }

  std::vector<std::string> events;

 private:
  const std::string folder_;
};

TEST_F(CheckpointTest, AreReportedAfterTheirStepWhenTheyAreOnDisk) {
  settings_.steps = 3;
  settings_.checkpoint_every = 2;
  OrderWatcher watcher(settings_.checkpoint_directory);
  Train(settings_, watcher);
  EXPECT_THAT(watcher.events,
              ElementsAre("step 1", "step 2", "checkpoint 2", "step 3", "checkpoint 3"));
}

TEST_F(CheckpointTest, PausingAtTheLastStepIsTheEnd) {
  settings_.steps = 4;
  Recorder recorder;
  recorder.pause_at = 4;
  EXPECT_EQ(Train(settings_, recorder).ending, Ending::kFinished);
}

// --- What is refused -----------------------------------------------------------------------------

class ResumeRefusalTest : public CheckpointTest {
 protected:
  ResumeRefusalTest() {
    settings_.steps = 4;
    settings_.checkpoint_every = 2;
    Recorder recorder;
    Train(settings_, recorder);
    settings_.resume_from = FileOf(2);
  }
};

TEST_F(ResumeRefusalTest, OtherSettingsAreNamedWithBothValues) {
  const std::pair<const char*, Change> cases[] = {
      {"layers 2; this run has 3", [](TrainingSettings& s) { s.layers = 3; }},
      {"learning_rate 0.002; this run has 0.003",
       [](TrainingSettings& s) { s.learning_rate = 0.003; }},
      {"data arithmetic; this run has copy", [](TrainingSettings& s) { s.data = "copy"; }},
      {"seed 7; this run has 8", [](TrainingSettings& s) { s.seed = 8; }},
      {"optimizer adamw; this run has sgd", [](TrainingSettings& s) { s.optimizer = "sgd"; }},
      {"threads 1; this run has 2", [](TrainingSettings& s) { s.threads = 2; }},
      {"norm layernorm; this run has rmsnorm", [](TrainingSettings& s) { s.norm = "rmsnorm"; }},
      {"batch_size 6; this run has 7", [](TrainingSettings& s) { s.batch_size = 7; }},
      {"accumulate 1; this run has 2", [](TrainingSettings& s) { s.accumulate = 2; }},
  };
  for (const auto& [message, change] : cases) {
    TrainingSettings settings = settings_;
    change(settings);
    EXPECT_THAT(Refusal(settings), AllOf(HasSubstr(message), HasSubstr(settings_.resume_from)));
  }
}

TEST_F(ResumeRefusalTest, WhatChangesNoNumberMayDiffer) {
  settings_.steps = 9;  // prolonged
  settings_.checkpoint_every = 0;
  settings_.keep_checkpoints = 7;
  settings_.diagnose_every = 1;
  settings_.stop_on_non_finite = false;
  settings_.init_file = "is not even looked at";
  Recorder recorder;
  EXPECT_EQ(Train(settings_, recorder).ending, Ending::kFinished);
  EXPECT_EQ(recorder.steps.front(), 3);
  EXPECT_EQ(recorder.steps.back(), 9);
}

TEST_F(ResumeRefusalTest, AFinishedRunHasNothingLeftAndNoneGoesBackwards) {
  settings_.resume_from = FileOf(4);
  Recorder recorder;
  const Result result = Train(settings_, recorder);
  EXPECT_EQ(result.ending, Ending::kFinished);
  EXPECT_EQ(result.last_step, 4);
  EXPECT_TRUE(recorder.steps.empty());
  settings_.steps = 3;
  EXPECT_THAT(Refusal(settings_), HasSubstr("is of step 4, beyond the run's steps, 3"));
}

TEST_F(CheckpointTest, ADecayingRunCannotBeProlonged) {
  settings_.schedule = "cosine";
  settings_.steps = 4;
  settings_.checkpoint_every = 2;
  Recorder recorder;
  Train(settings_, recorder);
  settings_.resume_from = FileOf(2);
  settings_.steps = 5;
  EXPECT_THAT(Refusal(settings_), AllOf(HasSubstr("steps 4; this run has 5"),
                                        HasSubstr("learning rates depend on steps")));
}

TEST_F(CheckpointTest, AnotherTextIsRefusedAndAMovedOneIsNot) {
  settings_.data = "text";
  settings_.vocab_size = 128;
  settings_.text_file = TextFile();
  settings_.steps = 4;
  settings_.checkpoint_every = 2;
  Recorder recorder;
  Train(settings_, recorder);
  settings_.resume_from = FileOf(2);
  settings_.text_file = folder_.path() / "moved.txt";
  std::ofstream(settings_.text_file) << ExampleText();
  EXPECT_EQ(Refusal(settings_), "accepted");
  std::ofstream(settings_.text_file) << ExampleText() + "!";
  EXPECT_THAT(Refusal(settings_), HasSubstr("another text"));
}

std::string BytesOf(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

// One bit in the middle, which is a number's: what a disk may do to a file, unseen by its layout.
std::string WithABitTurned(std::string bytes) {
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  return bytes;
}

TEST_F(ResumeRefusalTest, ADamagedOrForeignFileIsPutAside) {
  const std::string whole = BytesOf(FileOf(2));
  const std::vector<float> values = {1};
  const std::pair<std::function<void()>, const char*> cases[] = {
      {[this] { std::filesystem::resize_file(FileOf(2), 100); }, "cut off"},
      {[&] { std::ofstream(FileOf(2)) << whole.substr(0, whole.size() - 1); }, "cut off"},
      {[&] { std::ofstream(FileOf(2)) << std::string(whole.size(), '\0'); }, "no safetensors file"},
      {[&] { std::ofstream(FileOf(2)) << WithABitTurned(whole); }, "damaged: its checksum"},
      {[&] {
         WriteSafetensors(FileOf(2), {}, {{"x", {1}, values}});
       },
       "no checkpoint to resume"},
  };
  for (const auto& [damage, message] : cases) {
    std::ofstream(FileOf(2)) << whole;
    damage();
    const std::string damaged = BytesOf(FileOf(2));
    Recorder recorder;
    const Result result = Train(settings_, recorder);
    EXPECT_EQ(result.ending, Ending::kUnreadable);
    EXPECT_THAT(result.reason, AllOf(HasSubstr(message), HasSubstr("2.safetensors.unreadable")));
    EXPECT_TRUE(recorder.steps.empty());
    EXPECT_FALSE(std::filesystem::exists(FileOf(2)));
    EXPECT_EQ(BytesOf(FileOf(2) + ".unreadable"), damaged);
  }
  Recorder recorder;
  EXPECT_THAT(Train(settings_, recorder).reason,
              AllOf(HasSubstr("cannot be read"), HasSubstr("it is gone")));
}

TEST_F(ResumeRefusalTest, DamagedWeightsToStartFromAreLeftWhereTheyAre) {
  settings_.init_file = std::exchange(settings_.resume_from, "");
  const std::string whole = BytesOf(FileOf(2));
  std::ofstream(FileOf(2)) << WithABitTurned(whole);
  EXPECT_THAT(Refusal(settings_), HasSubstr("damaged: its checksum"));
  std::filesystem::resize_file(FileOf(2), 100);
  EXPECT_THAT(Refusal(settings_), HasSubstr("cut off"));
  EXPECT_TRUE(std::filesystem::exists(FileOf(2)));
}

TEST_F(ResumeRefusalTest, APostNormCheckpointIsNoPreNormModel) {
  // The fixture trained Pre-Norm; train Post-Norm beside it.
  TrainingSettings post = SmallSettings();
  post.placement = "post";
  post.final_norm = false;
  post.checkpoint_directory = folder_.path() / "post";
  post.steps = post.checkpoint_every = 2;
  Recorder recorder;
  Train(post, recorder);
  settings_.resume_from.clear();
  settings_.init_file = post.checkpoint_directory + "/" + recorder.checkpoints[2];
  EXPECT_THAT(Refusal(settings_), AllOf(HasSubstr("lacks 2 of the"), HasSubstr("final_norm/scale"),
                                        HasSubstr("final_norm/bias")));
  settings_.allow_missing = true;
  EXPECT_EQ(Refusal(settings_), "accepted");
  settings_.d_model = 32;
  EXPECT_THAT(Refusal(settings_), HasSubstr("of shape [12, 16] where the model has [12, 32]"));
}

TEST_F(ResumeRefusalTest, InitFileStartsWithTheWeightsAloneAtStepOne) {
  settings_.resume_from.clear();
  settings_.init_file = FileOf(4);
  Recorder fresh;
  Recorder warm;
  Train(settings_, warm);
  settings_.init_file.clear();
  Train(settings_, fresh);
  EXPECT_EQ(warm.steps.front(), 1);
  EXPECT_EQ(warm.series["learning_rate"], fresh.series["learning_rate"]);
  EXPECT_NE(warm.series["loss"][0], fresh.series["loss"][0]);
}

// --- Full and closed disks -----------------------------------------------------------------------

TEST_F(CheckpointTest, AFullDiskIsSaidAndThePreviousCheckpointStaysWhole) {
  settings_.steps = settings_.checkpoint_every = 2;
  Recorder recorder;
  Train(settings_, recorder);
  const auto contents = Contents(FileOf(2));
  settings_.resume_from = FileOf(2);
  settings_.steps = 6;
  settings_.checkpoint_every = 4;
  recorder.stop_after = 5;
  testing::internal::CaptureStderr();
  {
    const fakes::DiskFull half(std::filesystem::file_size(FileOf(2)) / 2);
    EXPECT_EQ(Train(settings_, recorder).last_step, 5);
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("no checkpoint of step 4"), HasSubstr("File too large")));
  EXPECT_EQ(Contents(FileOf(2)), contents);
  const auto files = std::filesystem::directory_iterator(settings_.checkpoint_directory);
  EXPECT_EQ(std::distance(files, {}), 1) << "no half file is left";
}

TEST_F(CheckpointTest, WhatCannotBeWrittenToIsSaid) {
  settings_.steps = settings_.checkpoint_every = 2;
  std::ofstream(folder_.path() / "file") << "in the way";
  settings_.checkpoint_directory = folder_.path() / "file" / "folder";
  EXPECT_THAT(Refusal(settings_), AllOf(HasSubstr("checkpoint_directory"), HasSubstr("/file/")));
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  settings_.checkpoint_directory = folder_.path() / "closed";
  std::filesystem::create_directory(settings_.checkpoint_directory);
  std::filesystem::permissions(settings_.checkpoint_directory, std::filesystem::perms::owner_read);
  settings_.checkpoint_every = 1;
  Recorder recorder;
  recorder.stop_after = 2;
  testing::internal::CaptureStderr();
  Train(settings_, recorder);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("Permission denied"));
}

TEST_F(CheckpointTest, LaterCheckpointsOfAnAbandonedPathAreLeftAlone) {
  settings_.steps = 6;
  settings_.checkpoint_every = 1;
  settings_.keep_checkpoints = 6;
  Recorder recorder;
  Train(settings_, recorder);
  settings_.resume_from = FileOf(2);
  settings_.keep_checkpoints = 1;
  Recorder again;
  again.stop_after = 2;  // at step 4, before its checkpoint
  Train(settings_, again);
  EXPECT_FALSE(std::filesystem::exists(FileOf(2)));
  EXPECT_TRUE(std::filesystem::exists(FileOf(3)));
  EXPECT_TRUE(std::filesystem::exists(FileOf(6)));
}

// --- Validation ----------------------------------------------------------------------------------

TEST_F(CheckpointTest, ValidationIsReportedWhenDueAndChangesNothing) {
  settings_.data = "text";
  settings_.vocab_size = 128;
  settings_.text_file = TextFile();
  settings_.steps = 20;
  for (const int64_t threads : {1, 2}) {
    settings_.threads = threads;
    settings_.validate_every = 0;
    Recorder without;
    Train(settings_, without);
    EXPECT_FALSE(without.series.contains("validation_loss"));
    settings_.validate_every = 8;
    Recorder with;
    Train(settings_, with);
    EXPECT_EQ(with.series["validation_loss"].size(), 3u);  // 8, 16, 20
    EXPECT_LT(with.series["validation_loss"].back(), with.series["loss"].front());
    EXPECT_EQ(with.series["loss"], without.series["loss"]);
    EXPECT_EQ(with.series["gradient_norm"], without.series["gradient_norm"]);
  }
}

// --- Every setting does something ----------------------------------------------------------------

TEST_F(CheckpointTest, EverySettingOfTrainingAndDataChangesTheResult) {
  const auto text = [this](TrainingSettings& s) {
    s.data = "text";
    s.vocab_size = 128;
    s.text_file = TextFile();
  };
  const auto nothing = [](TrainingSettings&) {};
  const struct {
    const char* name;
    Change base;
    Change change;
  } cases[] = {
      {"batch_size", nothing, [](TrainingSettings& s) { s.batch_size = 5; }},
      {"sequence_length", nothing, [](TrainingSettings& s) { s.sequence_length = 7; }},
      {"vocab_size", nothing, [](TrainingSettings& s) { s.vocab_size = 13; }},
      {"accumulate", nothing, [](TrainingSettings& s) { s.accumulate = 2; }},
      {"optimizer", nothing, [](TrainingSettings& s) { s.optimizer = "sgd"; }},
      {"momentum", [](TrainingSettings& s) { s.optimizer = "sgd"; },
       [](TrainingSettings& s) { s.momentum = 0.5; }},
      {"learning_rate", nothing, [](TrainingSettings& s) { s.learning_rate = 3e-3; }},
      {"schedule linear", nothing, [](TrainingSettings& s) { s.schedule = "linear"; }},
      {"schedule cosine", [](TrainingSettings& s) { s.schedule = "linear"; },
       [](TrainingSettings& s) { s.schedule = "cosine"; }},
      {"schedule noam", [](TrainingSettings& s) { s.warmup_steps = 3; },
       [](TrainingSettings& s) { s.schedule = "noam"; }},
      {"learning_rate_floor", [](TrainingSettings& s) { s.schedule = "linear"; },
       [](TrainingSettings& s) { s.learning_rate_floor = 1e-3; }},
      {"warmup_steps", nothing, [](TrainingSettings& s) { s.warmup_steps = 3; }},
      {"beta1", nothing, [](TrainingSettings& s) { s.beta1 = 0.8; }},
      {"beta2", nothing, [](TrainingSettings& s) { s.beta2 = 0.9; }},
      {"epsilon", nothing, [](TrainingSettings& s) { s.epsilon = 1e-4; }},
      {"weight_decay", nothing, [](TrainingSettings& s) { s.weight_decay = 0.1; }},
      {"decay_parameters", [](TrainingSettings& s) { s.weight_decay = 0.5; },
       [](TrainingSettings& s) { s.decay_parameters = "matrices"; }},
      {"clip_norm", nothing, [](TrainingSettings& s) { s.clip_norm = 0.1; }},
      {"seed", nothing, [](TrainingSettings& s) { s.seed = 8; }},
      {"data", nothing, [](TrainingSettings& s) { s.data = "copy"; }},
      {"data reverse", [](TrainingSettings& s) { s.data = "copy"; },
       [](TrainingSettings& s) { s.data = "reverse"; }},
      {"dropout", nothing, [](TrainingSettings& s) { s.dropout = 0.1; }},
      {"data gaussian", nothing, [](TrainingSettings& s) { s.data = "gaussian"; }},
      {"data modular-addition", nothing, [](TrainingSettings& s) { s.data = "modular-addition"; }},
      {"text_unit", text, [](TrainingSettings& s) { s.text_unit = "characters"; }},
      {"text_order", text, [](TrainingSettings& s) { s.text_order = "sequential"; }},
      {"validation_fraction", text, [](TrainingSettings& s) { s.validation_fraction = 0.3; }},
  };
  settings_.checkpoint_directory.clear();
  settings_.steps = 6;
  for (const auto& [name, base, change] : cases) {
    TrainingSettings settings = settings_;
    base(settings);
    Recorder before;
    Train(settings, before);
    change(settings);
    Recorder after;
    Train(settings, after);
    EXPECT_NE(before.series["loss"], after.series["loss"]) << name;
  }
}

TEST_F(CheckpointTest, TheLoggedNormIsTheOneBeforeClipping) {
  settings_.steps = 1;
  Recorder unclipped;
  Train(settings_, unclipped);
  settings_.clip_norm = unclipped.series["gradient_norm"][0] / 100;
  Recorder clipped;
  Train(settings_, clipped);
  EXPECT_EQ(clipped.series["gradient_norm"], unclipped.series["gradient_norm"]);
}

}  // namespace
}  // namespace normlab::trainer
