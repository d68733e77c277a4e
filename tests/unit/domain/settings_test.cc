#include "server/domain/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace normlab::domain {
namespace {

using normlab::v1::RunSpec;
using testing::HasSubstr;

TEST(SettingsTest, EveryFieldOfRunSpecIsDeclared) {
  ASSERT_EQ(Settings().size(), static_cast<size_t>(RunSpec::descriptor()->field_count()));
  for (const SettingInfo& setting : Settings()) {
    EXPECT_FALSE(setting.help.empty()) << setting.name;
    EXPECT_FALSE(setting.group.empty()) << setting.name;
    EXPECT_FALSE(setting.default_text.empty()) << setting.name;
    EXPECT_FALSE(AcceptedText(setting).empty()) << setting.name;
    EXPECT_EQ(setting.HasAuto(), !setting.auto_help.empty()) << setting.name;
    EXPECT_TRUE(RunSpec::descriptor()->FindFieldByName(setting.name)->has_presence());
  }
}

TEST(SettingsTest, EveryDefaultReadsBackAndLiesInItsRange) {
  for (const SettingInfo& setting : Settings()) {
    RunSpec spec;
    EXPECT_TRUE(SetFromText(spec, setting.name, setting.default_text).ok()) << setting.name;
  }
  RunSpec spec;
  FillDefaults(spec);
  EXPECT_EQ(spec.layers(), 12);
  EXPECT_EQ(spec.norm_epsilon(), 1e-6);
  EXPECT_TRUE(spec.stop_on_non_finite());
  EXPECT_FALSE(spec.has_ffn_width());
  EXPECT_TRUE(CheckRanges(spec).empty());
}

TEST(SettingsTest, DefaultsDoNotReplaceWhatIsSetToZero) {
  RunSpec spec;
  spec.set_weight_decay(0);
  FillDefaults(spec);
  EXPECT_EQ(spec.weight_decay(), 0);
}

TEST(SettingsTest, TextIsReadByTheFieldsType) {
  RunSpec spec;
  EXPECT_TRUE(SetFromText(spec, "layers", "6").ok());
  EXPECT_TRUE(SetFromText(spec, "learning-rate", "2e-3").ok());
  EXPECT_TRUE(SetFromText(spec, "stop_on_non_finite", "off").ok());
  EXPECT_TRUE(SetFromText(spec, "placement", "post").ok());
  EXPECT_EQ(spec.layers(), 6);
  EXPECT_EQ(spec.learning_rate(), 0.002);
  EXPECT_FALSE(spec.stop_on_non_finite());
  EXPECT_TRUE(spec.has_stop_on_non_finite());
  EXPECT_EQ(spec.placement(), "post");
}

TEST(SettingsTest, AutoClearsANumberAndStaysAChoice) {
  RunSpec spec;
  spec.set_ffn_width(8);
  EXPECT_TRUE(SetFromText(spec, "ffn_width", "auto").ok());
  EXPECT_FALSE(spec.has_ffn_width());
  EXPECT_EQ(ValueText(spec, "ffn_width"), "auto");
  EXPECT_TRUE(SetFromText(spec, "norm", "auto").ok());
  EXPECT_EQ(spec.norm(), "auto");
}

TEST(SettingsTest, WrongTextNamesTheSettingAndChangesNothing) {
  RunSpec spec;
  for (const char* text : {"", " 6", "6.0", "1e3", "six", "0x10", "99999999999999999999", "0",
                           "1025", "-1", "auto", "nan"}) {
    const absl::Status status = SetFromText(spec, "layers", text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("layers")) << text;
  }
  for (const char* text : {"nan", "inf", "-inf", "1e999", "", "2e-3x", "-1", "1001"}) {
    EXPECT_FALSE(SetFromText(spec, "learning_rate", text).ok()) << text;
  }
  EXPECT_FALSE(SetFromText(spec, "init_from", "\xFF.safetensors").ok()) << "no message can hold it";
  EXPECT_EQ(spec.ByteSizeLong(), 0u);
  EXPECT_EQ(SetFromText(spec, "layers", "0").message(), "layers: 0 is too small; use 1 to 1024");
  EXPECT_EQ(SetFromText(spec, "final_norm", "maybe").message(),
            "final_norm: \"maybe\" is not a choice; use auto, on, off");
}

TEST(SettingsTest, APrefixTakesAnyTextBehindIt) {
  RunSpec spec;
  EXPECT_TRUE(SetFromText(spec, "data", "text:alice").ok());
  EXPECT_EQ(spec.data(), "text:alice");
  EXPECT_FALSE(SetFromText(spec, "data", "text:").ok());
  EXPECT_THAT(std::string(SetFromText(spec, "data", "texts").message()), HasSubstr("text:NAME"));
}

TEST(SettingsTest, ASettingThatDoesNotCountIsRefusedWhereItIsGiven) {
  RunSpec given;
  given.set_experts(8);
  given.set_learning_rate_floor(1e-4);
  given.set_text_unit("bytes");
  RunSpec effective = given;
  FillDefaults(effective);
  ASSERT_EQ(CheckNeeds(given, effective).size(), 3u);
  EXPECT_EQ(CheckNeeds(given, effective)[0].field, "spec.experts");
  EXPECT_THAT(CheckNeeds(given, effective)[0].description, HasSubstr("ffn=switch"));
  effective.set_ffn("switch");
  effective.set_schedule("linear");
  effective.set_data("text:alice");
  EXPECT_THAT(CheckNeeds(given, effective), testing::IsEmpty());
}

// Every `needs` names a setting and values that it can have.
TEST(SettingsTest, NeedsNameRealSettingsAndChoices) {
  for (const SettingInfo& setting : Settings()) {
    if (setting.needs.empty()) continue;
    const size_t equals = setting.needs.find('=');
    const SettingInfo* other = FindSetting(setting.needs.substr(0, equals));
    ASSERT_NE(other, nullptr) << setting.needs;
    std::stringstream values(setting.needs.substr(equals + 1));
    for (std::string value; std::getline(values, value, '|');) {
      const bool prefix = value + ":" == other->choice_prefix;
      EXPECT_TRUE(prefix || std::ranges::count(other->choices, value) == 1) << setting.needs;
    }
  }
}

TEST(SettingsTest, ExclusiveBoundsAreExclusive) {
  RunSpec spec;
  EXPECT_FALSE(SetFromText(spec, "norm_epsilon", "0").ok());
  EXPECT_FALSE(SetFromText(spec, "beta1", "1").ok());
  EXPECT_TRUE(SetFromText(spec, "beta1", "0").ok());
  EXPECT_EQ(SetFromText(spec, "beta1", "1").message(),
            "beta1: 1 is too large; use at least 0, below 1");
}

TEST(SettingsTest, UnknownNameIsRefusedWithTheNearestRealOne) {
  RunSpec spec;
  EXPECT_EQ(SetFromText(spec, "layer", "6").message(),
            "there is no setting \"layer\"; did you mean layers?");
  EXPECT_EQ(NearestName("lr"), "learning_rate");
  EXPECT_EQ(NearestName("learningrate"), "learning_rate");
  EXPECT_EQ(NearestName("n_layers"), "layers");
  EXPECT_EQ(NearestName("batch-size"), "batch_size");
  EXPECT_EQ(NearestName("placment"), "placement");
  EXPECT_EQ(NearestName("zzzzzzzz"), std::nullopt);
  EXPECT_EQ(NearestName(""), std::nullopt);
}

TEST(SettingsTest, RangesAreCheckedForEverySettingAtOnce) {
  RunSpec spec;
  spec.set_layers(1'000'000'000);
  spec.set_learning_rate(std::numeric_limits<double>::quiet_NaN());
  spec.set_norm("batchnorm");
  spec.set_heads(0);
  const std::vector<FieldViolation> violations = CheckRanges(spec);
  ASSERT_EQ(violations.size(), 4u);
  EXPECT_EQ(violations[0].field, "spec.norm");
  EXPECT_EQ(violations[1].field, "spec.layers");
  EXPECT_EQ(violations[1].description, "1000000000 is too large; use 1 to 1024");
  EXPECT_EQ(violations[2].field, "spec.heads");
  EXPECT_EQ(violations[3].description, "NaN is not a finite number; use 0 to 1000");
}

TEST(SettingsTest, ValueTextIsTheShortestThatReadsBack) {
  RunSpec spec;
  spec.set_learning_rate(0.1);
  spec.set_epsilon(1e-8);
  spec.set_weight_decay(1.0 / 3.0);
  EXPECT_EQ(ValueText(spec, "learning_rate"), "0.1");
  EXPECT_EQ(ValueText(spec, "epsilon"), "1e-08");
  EXPECT_EQ(ValueText(spec, "weight_decay"), "0.3333333333333333");
  EXPECT_EQ(ValueText(spec, "layers"), "12");
  EXPECT_EQ(ValueText(spec, "no_such"), "");
}

TEST(SettingsTest, JsonHoldsEverySetting) {
  const auto json = nlohmann::json::parse(SettingsToJson());
  ASSERT_EQ(json["settings"].size(), Settings().size());
  const auto& list = json["settings"];
  const auto found = std::ranges::find(list, "layers", [](const auto& s) { return s["name"]; });
  ASSERT_NE(found, list.end());
  const auto& layers = *found;
  EXPECT_EQ(layers["type"], "integer");
  EXPECT_EQ(layers["maximum"], 1024);
}

TEST(SettingsTest, TheSchemaSaysWhatASpecMayHold) {
  const auto schema = nlohmann::json::parse(SettingsToJson())["schema"];
  const auto& properties = schema["properties"];
  EXPECT_EQ(properties.size(), Settings().size());
  EXPECT_EQ(schema["additionalProperties"], false);
  EXPECT_EQ(properties["layers"]["type"], "integer");
  EXPECT_EQ(properties["layers"]["minimum"], 1);
  EXPECT_EQ(properties["normEpsilon"]["exclusiveMinimum"], 0);
  EXPECT_EQ(properties["stopOnNonFinite"]["type"], "boolean");
  EXPECT_EQ(properties["schedule"]["enum"].size(), FindSetting("schedule")->choices.size());
  EXPECT_EQ(properties["data"]["anyOf"][1]["pattern"], "^text:.+");
}

TEST(SettingsTest, TheDocumentationPageIsUpToDate) {
  std::ifstream file(NORMLAB_SOURCE_DIR "/docs/settings.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(page, SettingsToMarkdown())
      << "run: normlab submit --help-settings --markdown > docs/settings.md";
  for (const SettingInfo& setting : Settings()) {
    EXPECT_THAT(page, HasSubstr("| `" + setting.name + "` |"));
  }
}

}  // namespace
}  // namespace normlab::domain
