#include "server/domain/presets.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/domain/settings.h"
#include "server/domain/spec.h"
#include "tests/unit/domain/specs.h"

namespace normlab::domain {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

TEST(PresetsTest, TheArticleHasItsThreeRunsWithTheirWarmups) {
  const v1::Preset* article = FindPreset("article");
  ASSERT_NE(article, nullptr);
  std::vector<int64_t> warmups;
  for (const v1::PresetRun& run : article->runs()) {
    EXPECT_THAT(CheckSpec(run.spec(), kMachine), IsEmpty());
    warmups.push_back(EffectiveSpec(run.spec()).warmup_steps());
  }
  EXPECT_THAT(warmups, ElementsAre(0, 0, 120));
  EXPECT_EQ(FindPreset("nonsense"), nullptr);
}

TEST(PresetsTest, TwoThirdsIsExactForEveryLength) {
  const v1::RunSpec& warm = FindPreset("article")->runs(2).spec();
  for (int64_t steps = 2; steps < 20'000; ++steps) {
    v1::RunSpec overrides;
    overrides.set_steps(steps);
    ASSERT_EQ(EffectiveSpec(MergeSpecs(warm, overrides)).warmup_steps(), 2 * steps / 3) << steps;
  }
}

TEST(PresetsTest, NamesSayTheSettingsThatAreTrained) {
  EXPECT_EQ(ListPresets().presets(0).runs(2).display_name(), "Post-Norm · 120-step warmup");
  const v1::RunSpec spec = EffectiveSpec(Spec({{"warmup_steps", "20"}, {"layers", "6"}}));
  EXPECT_EQ(FillName("{warmup_steps}-step, {layers} deep", spec), "20-step, 6 deep");
  EXPECT_EQ(FillName("plain", {}), "plain");
  EXPECT_EQ(FillName("an open {brace", spec), "an open {brace");
}

TEST(PresetsTest, EveryRunIsAcceptedAndHasANameOfItsOwn) {
  const v1::ListPresetsResponse list = ListPresets();
  for (const v1::Preset& preset : list.presets()) {
    std::set<std::string> names;
    for (const v1::PresetRun& run : preset.runs()) {
      EXPECT_THAT(CheckSpec(run.spec(), kMachine), IsEmpty()) << run.display_name();
      EXPECT_THAT(CheckDisplayName("name", run.display_name()), IsEmpty());
      EXPECT_TRUE(names.insert(run.display_name()).second) << run.display_name();
    }
  }
}

// What names a run's row in the table.
std::vector<std::string> RowOf(const v1::Preset& preset, const v1::PresetRun& run) {
  const v1::RunSpec effective = EffectiveSpec(run.spec());
  std::vector<std::string> row;
  for (const std::string& name : preset.table().row_settings()) {
    row.push_back(ValueText(effective, name));
  }
  return row;
}

TEST(PresetsTest, EveryExpectationIsOfARowAndAColumnThatThereIs) {
  for (const v1::Preset& preset : Presets()) {
    if (!preset.has_table()) continue;
    std::set<std::vector<std::string>> rows;
    std::set<std::string> columns = {"", "slope", "minus first", "12"};
    for (const v1::PresetRun& run : preset.runs()) {
      rows.insert(RowOf(preset, run));
      columns.insert(ValueText(EffectiveSpec(run.spec()), preset.table().column_setting()));
    }
    EXPECT_FALSE(preset.table().expectations().empty()) << preset.name();
    for (const v1::PresetExpectation& expected : preset.table().expectations()) {
      EXPECT_THAT(rows,
                  Contains(std::vector<std::string>(expected.row().begin(), expected.row().end())));
      EXPECT_THAT(columns, Contains(expected.column()));
      if (expected.value() == 0) continue;  // a bound without a number
      EXPECT_TRUE(!expected.has_minimum() || expected.minimum() <= expected.value());
      EXPECT_TRUE(!expected.has_maximum() || expected.maximum() >= expected.value());
    }
  }
}

TEST(PresetsTest, PlacementsRunsEveryPlacementThatIsDeclared) {
  std::set<std::string> run;
  for (const v1::PresetRun& one : FindPreset("placements")->runs()) {
    run.insert(one.spec().placement());
  }
  const auto& declared = FindSetting("placement")->choices;
  EXPECT_EQ(run, std::set<std::string>(declared.begin(), declared.end()));
}

TEST(PresetsTest, DepthLrIsEveryDepthAtEveryRateAndJudgesWhatWasMeasured) {
  const v1::Preset& preset = *FindPreset("depth-lr");
  EXPECT_EQ(preset.runs_size(), 2 * 6 * 4 * 3);
  for (const v1::PresetRun& run : preset.runs()) {
    const v1::RunSpec spec = EffectiveSpec(run.spec());
    EXPECT_EQ(spec.warmup_steps(), 0);
    EXPECT_EQ(spec.steps(), 120);
    EXPECT_EQ(spec.d_model(), 32);
    EXPECT_EQ(spec.vocab_size(), 32);
    EXPECT_EQ(spec.sequence_length(), 16);
    EXPECT_EQ(spec.heads(), 4);
    EXPECT_EQ(spec.batch_size(), 16);
  }
  for (const v1::PresetExpectation& expected : preset.table().expectations()) {
    EXPECT_NE(expected.row(1), "36");
    EXPECT_NE(expected.row(1), "48");
  }
}

TEST(PresetsTest, InitGradientsIsTheTheorysForm) {
  const v1::Preset& preset = *FindPreset("init-gradients");
  EXPECT_EQ(preset.runs_size(), 2 * 6 * 4);
  for (const v1::PresetRun& run : preset.runs()) {
    const v1::RunSpec spec = EffectiveSpec(run.spec());
    EXPECT_EQ(spec.attention(), "uniform");
    EXPECT_EQ(spec.init(), "fan-in");
    EXPECT_EQ(spec.final_norm(), spec.placement() == "pre" ? "on" : "off");
    EXPECT_EQ(spec.norm_epsilon(), 1e-12);
    EXPECT_FALSE(spec.norm_gain() || spec.bias() || spec.causal());
    EXPECT_EQ(spec.ffn_width(), spec.d_model());
  }
}

TEST(PresetsTest, WhatATableComparesCannotBeOverridden) {
  const v1::Preset& preset = *FindPreset("init-gradients");
  EXPECT_THAT(CheckOverrides(preset, Spec({{"layers", "3"}})),
              ElementsAre(Field(&FieldViolation::field, "overrides.layers")));
  EXPECT_THAT(CheckOverrides(preset, Spec({{"d_model", "64"}, {"probe_every", "0"}})), IsEmpty());
  EXPECT_THAT(CheckOverrides(*FindPreset("article"), Spec({{"warmup_steps", "3"}})), IsEmpty());
}

}  // namespace
}  // namespace normlab::domain
