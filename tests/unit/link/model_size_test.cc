// The formulas of server/domain/model_size against the models that the engine builds. Both walk
// what run_spec.proto declares, so a choice that is added there is tested here.
#include "server/domain/model_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/gpu_context.h"
#include "server/domain/settings.h"
#include "server/domain/spec.h"
#include "server/trainer/link/settings.h"
#include "server/trainer/train/learner.h"
#include "tests/emulation/emulated_device.h"

namespace normlab::domain {
namespace {

using Given = std::vector<std::pair<std::string, std::string>>;

constexpr MachineLimits kMachine = {.cpu_threads = 4};

// Every size differs, so that no two can be mistaken for each other.
v1::RunSpec SmallSpec(const Given& given) {
  v1::RunSpec spec;
  const Given sizes = {{"layers", "4"},     {"d_model", "12"},        {"heads", "3"},
                       {"ffn_width", "20"}, {"vocab_size", "11"},     {"sequence_length", "5"},
                       {"batch_size", "2"}, {"schedule", "constant"}, {"warmup_steps", "0"}};
  for (const Given& part : {sizes, given}) {
    for (const auto& [name, value] : part) {
      const absl::Status status = SetFromText(spec, name, value);
      EXPECT_TRUE(status.ok()) << status;
    }
  }
  return spec;
}

std::string Text(const Given& given) {
  std::string text;
  for (const auto& [name, value] : given) text += name + "=" + value + " ";
  return text;
}

// Parameters of the model that the engine builds, or -1 with a failure that says why it does not.
int64_t BuiltParameters(const v1::RunSpec& effective) {
  const absl::StatusOr<trainer::TrainingSettings> settings = trainer::SettingsFromSpec(effective);
  EXPECT_TRUE(settings.ok()) << settings.status();
  if (!settings.ok()) return -1;
  try {
    return trainer::Learner(*settings).parameters().parameter_count();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "the engine refuses what the settings allow: " << error.what();
    return -1;
  }
}

// False when the rules between settings refuse it: then there is no such model.
bool ExpectTheSameCount(const Given& given) {
  SCOPED_TRACE(Text(given));
  const v1::RunSpec spec = SmallSpec(given);
  if (!CheckSpec(spec, kMachine).empty()) return false;
  const v1::RunSpec effective = EffectiveSpec(spec);
  const int64_t built = BuiltParameters(effective);
  EXPECT_TRUE(built < 0 || ParameterCount(effective) == built)
      << "by formula " << ParameterCount(effective) << ", built " << built;
  return true;
}

std::vector<std::string> ChoicesOf(std::string_view setting) {
  std::vector<std::string> choices = FindSetting(setting)->choices;
  std::erase(choices, "auto");
  return choices;
}

// Parts that change how many parameters there are, besides placement and norm.
const std::vector<Given>& Variants() {
  static const auto* const kVariants = new std::vector<Given>{
      {{"bias", "false"}},
      {{"norm_gain", "false"}},
      {{"final_norm", "on"}},
      {{"final_norm", "off"}},
      {{"qk_norm", "rms-full"}},
      {{"qk_norm", "rms-head"}},
      {{"qk_norm", "off"}},
      {{"qk_norm", "rms-head"}, {"norm_gain", "false"}},
      {{"tie_embeddings", "true"}},
      {{"activation", "swiglu"}},
      {{"activation", "swiglu"}, {"bias", "false"}},
      {{"ffn", "switch"}, {"experts", "3"}},
      {{"ffn", "switch"}, {"experts", "1"}, {"bias", "false"}, {"activation", "swiglu"}},
      {{"attention", "uniform"}, {"heads", "1"}, {"qk_norm", "off"}},
      {{"attention", "uniform"},
       {"heads", "1"},
       {"qk_norm", "off"},
       {"bias", "false"},
       {"causal", "false"}},
      {{"positions", "sinusoidal"}},
      {{"positions", "rotary"}},
      {{"positions", "none"}},
      {{"data", "gaussian"}, {"positions", "none"}},
      {{"data", "gaussian"}},
      {{"mix_fraction", "0.5"}},
      {{"residual_scale", "0.5"}},
      {{"model", "xl"}, {"memory_length", "7"}, {"table_length", "9"}},
      {{"model", "xl"}, {"ffn", "switch"}, {"tie_embeddings", "true"}},
      {{"model", "encdec"}, {"data", "copy"}, {"decoder_layers", "3"}},
      {{"model", "encdec"}, {"data", "copy"}, {"positions", "sinusoidal"}, {"bias", "false"}},
  };
  return *kVariants;
}

TEST(ModelSizeTest, ParametersOfEveryPlacementWithEveryNorm) {
  for (const std::string& placement : ChoicesOf("placement")) {
    for (const std::string& norm : ChoicesOf("norm")) {
      EXPECT_TRUE(ExpectTheSameCount({{"placement", placement}, {"norm", norm}})) << placement;
    }
  }
}

TEST(ModelSizeTest, ParametersOfEveryPlacementWithEveryPart) {
  for (const Given& variant : Variants()) {
    int allowed = 0;
    for (const std::string& placement : ChoicesOf("placement")) {
      for (const std::string& norm : ChoicesOf("norm")) {
        Given given = variant;
        given.insert(given.end(), {{"placement", placement}, {"norm", norm}});
        allowed += ExpectTheSameCount(given);
      }
    }
    EXPECT_GT(allowed, 0) << Text(variant);
  }
}

// What a setting needs so that it counts, as its declaration says: "ffn=switch".
Given NeedsOf(const SettingInfo& setting) {
  Given given;
  if (setting.needs.empty()) return given;
  const size_t equals = setting.needs.find('=');
  const std::string value = setting.needs.substr(equals + 1);
  const std::string first = value.substr(0, value.find('|'));
  given.emplace_back(setting.needs.substr(0, equals), first == "text" ? "text:t" : first);
  return given;
}

// What a choice needs besides, so that the rules between settings allow it.
Given CompanionsOf(const std::string& choice) {
  if (choice == "encdec") return {{"data", "copy"}};
  if (choice == "deepnorm" || choice == "admin") return {{"placement", choice}};
  if (choice == "uniform") return {{"heads", "1"}};
  if (choice == "noam") return {{"warmup_steps", "2"}};
  return {};
}

TEST(ModelSizeTest, ParametersOfEveryChoiceOfEverySetting) {
  for (const SettingInfo& setting : Settings()) {
    if (setting.name == "cuda_graph") continue;  // refused where there is no GPU, and no part
    std::vector<std::string> choices = setting.choices;
    std::erase(choices, "auto");
    if (setting.type == SettingType::kSwitch) choices = {"true", "false"};
    for (const std::string& choice : choices) {
      Given given = NeedsOf(setting);
      if (!given.empty() && given[0].first == "data") given.emplace_back("vocab_size", "256");
      for (auto& companion : CompanionsOf(choice)) given.push_back(std::move(companion));
      given.emplace_back(setting.name, choice);
      EXPECT_TRUE(ExpectTheSameCount(given)) << setting.name << " " << choice;
    }
  }
}

// By hand, with d 64, T 32, V 64, FFN 256, 12 blocks and 24 sequences.
TEST(ModelSizeTest, FlopsOfTheArticleAreThoseOfItsProducts) {
  const v1::RunSpec article = EffectiveSpec({});
  const double rows = 24 * 32;
  const double weights = 12 * (4.0 * 64 * 64 + 2 * 64 * 256) + 64 * 64;
  const double attention = 12 * 2 * 64 * (33 / 2.0);  // a row sees 16.5 keys on average
  EXPECT_EQ(FlopsPerStep(article), 6 * rows * (weights + attention));
  EXPECT_NEAR(6 * rows * weights, 2.74e9, 0.005e9);
  EXPECT_EQ(ParameterCount(article), 610'176);
}

double Flops(const Given& given) {
  const v1::RunSpec spec = SmallSpec(given);
  EXPECT_THAT(CheckSpec(spec, kMachine), testing::IsEmpty()) << Text(given);
  return FlopsPerStep(EffectiveSpec(spec));
}

// d 12, FFN 20, V 11, T 5, 4 blocks, 2 sequences: 6 operations a multiply-add and row.
TEST(ModelSizeTest, FlopsOfTheOtherPartsByHand) {
  const double block = 4 * 144 + 2 * 12 * 20;
  const double ends = 12 * 11;
  EXPECT_EQ(Flops({}), 60 * (4 * (block + 2 * 12 * 3) + ends));
  EXPECT_EQ(Flops({{"causal", "false"}}), 60 * (4 * (block + 2 * 12 * 5) + ends));
  EXPECT_EQ(Flops({{"accumulate", "3"}}), 3 * Flops({}));
  EXPECT_EQ(Flops({{"activation", "swiglu"}}), Flops({}) + 60 * 4 * 12 * 20);
  EXPECT_EQ(Flops({{"ffn", "switch"}, {"experts", "3"}}), Flops({}) + 60 * 4 * 12 * 3);
  EXPECT_EQ(Flops({{"attention", "uniform"}, {"heads", "1"}}),
            60 * (4 * (144 + 2 * 12 * 20) + ends));
  // Memory 10: keys and values of 10 more positions for 5 rows; scores with keys and distances.
  EXPECT_EQ(Flops({{"model", "xl"}, {"memory_length", "10"}}),
            60 * (4 * (block + 2 * 144 * 2 + 3 * 12 * 13) + ends));
  // Encoder not causal; the decoder has one more attention, over the whole source.
  EXPECT_EQ(Flops({{"model", "encdec"}, {"data", "copy"}, {"decoder_layers", "1"}}),
            60 * (4 * (block + 2 * 12 * 5) + (block + 2 * 12 * 3) + (4 * 144 + 2 * 12 * 5) + ends));
}

TEST(ModelSizeTest, MoreOfAnythingNeedsMoreMemory) {
  const double base = MemoryBytes(EffectiveSpec(SmallSpec({})));
  for (const Given& more : std::vector<Given>{{{"layers", "5"}},
                                              {{"d_model", "15"}},
                                              {{"ffn_width", "21"}},
                                              {{"vocab_size", "12"}},
                                              {{"sequence_length", "6"}},
                                              {{"batch_size", "3"}},
                                              {{"threads", "2"}},
                                              {{"placement", "sandwich"}},
                                              {{"activation", "swiglu"}}}) {
    EXPECT_GT(MemoryBytes(EffectiveSpec(SmallSpec(more))), base) << Text(more);
  }
  EXPECT_LT(MemoryBytes(EffectiveSpec(SmallSpec({{"optimizer", "sgd"}}))), base);
}

// --- the budget of a run on a GPU ---

// Large enough that rounding to cache lines and small buffers do not count, small enough for the
// emulation.
const Given kMiddle = {{"layers", "3"},      {"d_model", "96"},      {"heads", "3"},
                       {"ffn_width", "384"}, {"vocab_size", "500"},  {"sequence_length", "24"},
                       {"batch_size", "16"}, {"diagnose_every", "0"}};

// Bytes that the engine holds of a device for these settings; -1 when it refuses to train there.
int64_t HeldOnDevice(const v1::RunSpec& effective) {
  absl::StatusOr<trainer::TrainingSettings> settings = trainer::SettingsFromSpec(effective);
  EXPECT_TRUE(settings.ok()) << settings.status();
  trainer::Device& device = trainer::EmulatedDevice();
  settings->device = "emulated";
  settings->threads = 1;
  try {
    const trainer::Learner learner(*settings);
    return static_cast<int64_t>(device.budget().held());
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("runs on the CPU only"));
    return -1;
  }
}

// What is left of a default budget when CUDA has taken its part.
double Room(const v1::RunSpec& effective) {
  return static_cast<double>(GpuMemoryBytes(effective) - kGpuContextBytes);
}

TEST(ModelSizeTest, TheDefaultBudgetOnAGpuHoldsEveryRunAndNotMuchMore) {
  std::vector<Given> variants = {{},
                                 {{"optimizer", "sgd"}},
                                 {{"accumulate", "3"}},
                                 {{"dropout", "0.1"}},
                                 {{"residual_scale", "0.5"}},
                                 {{"sequence_length", "256"}, {"batch_size", "2"}},
                                 {{"vocab_size", "8000"}},
                                 {{"tie_embeddings", "true"}},
                                 {{"activation", "swiglu"}},
                                 {{"positions", "rotary"}},
                                 {{"qk_norm", "rms-full"}},
                                 {{"qk_norm", "rms-head"}},
                                 {{"data", "gaussian"}},
                                 {{"attention", "uniform"}, {"heads", "1"}}};
  for (const std::string& placement : ChoicesOf("placement")) {
    for (const std::string& norm : ChoicesOf("norm")) {
      variants.push_back({{"placement", placement}, {"norm", norm}});
    }
  }
  int trained = 0;
  for (const Given& variant : variants) {
    SCOPED_TRACE(Text(variant));
    Given given = kMiddle;
    given.insert(given.end(), variant.begin(), variant.end());
    const v1::RunSpec spec = SmallSpec(given);
    if (!CheckSpec(spec, kMachine).empty()) continue;
    const v1::RunSpec effective = EffectiveSpec(spec);
    const int64_t held = HeldOnDevice(effective);
    if (held < 0) continue;
    ++trained;
    EXPECT_LE(static_cast<double>(held), Room(effective));
    EXPECT_GE(static_cast<double>(held), 0.8 * Room(effective));
  }
  EXPECT_GT(trained, 40);
}

}  // namespace
}  // namespace normlab::domain
