#include "server/domain/spec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/domain/settings.h"
#include "tests/unit/domain/specs.h"

namespace normlab::domain {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(SpecTest, NothingGivenIsTheArticlesPreNormRun) {
  const v1::RunSpec spec = EffectiveSpec({});
  EXPECT_THAT(CheckSpec({}, kMachine), IsEmpty());
  EXPECT_EQ(spec.placement(), "pre");
  EXPECT_EQ(spec.norm(), "layernorm");
  EXPECT_EQ(spec.norm_epsilon(), 1e-6);
  EXPECT_EQ(spec.final_norm(), "on");
  EXPECT_EQ(spec.layers(), 12);
  EXPECT_EQ(spec.d_model(), 64);
  EXPECT_EQ(spec.heads(), 4);
  EXPECT_EQ(spec.ffn_width(), 256);
  EXPECT_EQ(spec.vocab_size(), 64);
  EXPECT_EQ(spec.sequence_length(), 32);
  EXPECT_EQ(spec.batch_size(), 24);
  EXPECT_EQ(spec.steps(), 180);
  EXPECT_EQ(spec.learning_rate(), 2e-3);
  EXPECT_EQ(spec.beta2(), 0.95);
  EXPECT_EQ(spec.weight_decay(), 0.01);
  EXPECT_EQ(spec.seed(), 7);
  EXPECT_EQ(spec.warmup_steps(), 0);
}

TEST(SpecTest, EffectiveMeansNothingIsAbsentOrAuto) {
  const v1::RunSpec spec = EffectiveSpec({});
  for (const SettingInfo& setting : Settings()) {
    EXPECT_TRUE(IsSet(spec, setting.name)) << setting.name;
    EXPECT_NE(ValueText(spec, setting.name), "auto") << setting.name;
  }
}

TEST(SpecTest, AutoFollowsOtherSettings) {
  EXPECT_EQ(EffectiveSpec(Spec({{"placement", "post"}})).final_norm(), "off");
  EXPECT_EQ(EffectiveSpec(Spec({{"placement", "post"}, {"final_norm", "on"}})).final_norm(), "on");
  EXPECT_EQ(EffectiveSpec(Spec({{"d_model", "96"}})).ffn_width(), 384);
}

TEST(SpecTest, WarmupFractionIsRoundedDownButNeverToNothing) {
  EXPECT_EQ(EffectiveSpec(Spec({{"warmup_fraction", "0.5"}, {"steps", "7"}})).warmup_steps(), 3);
  EXPECT_EQ(EffectiveSpec(Spec({{"warmup_fraction", "0.1"}, {"steps", "7"}})).warmup_steps(), 1);
  EXPECT_EQ(EffectiveSpec(Spec({{"warmup_fraction", "0"}, {"steps", "7"}})).warmup_steps(), 0);
}

TEST(SpecTest, SettingsThatDoNotFitTogetherAreNamed) {
  EXPECT_THAT(CheckSpec(Spec({{"heads", "5"}}), kMachine),
              ElementsAre(Field(&FieldViolation::field, "spec.heads")));
  EXPECT_THAT(CheckSpec(Spec({{"warmup_steps", "2"}, {"warmup_fraction", "0.5"}}), kMachine),
              ElementsAre(Field(&FieldViolation::field, "spec.warmup_fraction")));
  EXPECT_THAT(CheckSpec(Spec({{"threads", "3"}}), kMachine),
              ElementsAre(Field(&FieldViolation::field, "spec.threads")));
}

// What each placement brings along: final norm, norm of queries and keys, kind of norm, weights.
TEST(SpecTest, EveryPlacementResolvesItsAutos) {
  const struct {
    const char* placement;
    const char* expected;
  } cases[] = {
      {"pre", "on off layernorm flax"},
      {"post", "off off layernorm flax"},
      {"post-single", "off off layernorm flax"},
      {"sandwich", "on off layernorm flax"},
      {"olmo2", "on rms-full rmsnorm flax"},
      {"normformer", "on off layernorm flax"},
      {"deepnorm", "off off layernorm deepnorm"},
      {"admin", "off off layernorm admin"},
      {"rezero", "off off layernorm flax"},
      {"layerscale", "on off layernorm flax"},
      {"b2t", "off off layernorm flax"},
      {"residual-dual", "off off layernorm flax"},
      {"mix", "on off layernorm flax"},
      {"hybrid", "on rms-head rmsnorm flax"},
      {"hybrid-star", "on rms-head rmsnorm flax"},
      {"lns", "on off layernorm flax"},
      {"none", "off off layernorm flax"},
  };
  EXPECT_THAT(FindSetting("placement")->choices, SizeIs(std::size(cases)));
  for (const auto& [placement, expected] : cases) {
    const v1::RunSpec spec = EffectiveSpec(Spec({{"placement", placement}}));
    EXPECT_EQ(spec.final_norm() + " " + spec.qk_norm() + " " + spec.norm() + " " + spec.init(),
              expected)
        << placement;
    EXPECT_THAT(CheckSpec(Spec({{"placement", placement}}), kMachine), IsEmpty()) << placement;
  }
}

TEST(SpecTest, PartsThatExcludeEachOtherAreRefused) {
  using Given = std::initializer_list<std::pair<const char*, const char*>>;
  const struct {
    Given given;
    const char* field;
  } cases[] = {
      {{{"model", "xl"}, {"placement", "post"}}, "placement"},
      {{{"model", "encdec"}, {"data", "copy"}, {"placement", "mix"}}, "placement"},
      {{{"model", "encdec"}}, "data"},
      {{{"model", "encdec"}, {"data", "copy"}, {"sequence_length", "1"}}, "sequence_length"},
      {{{"model", "xl"}, {"positions", "learned"}}, "positions"},
      {{{"model", "xl"}, {"accumulate", "2"}}, "accumulate"},
      {{{"model", "xl"}, {"causal", "off"}}, "causal"},
      {{{"attention", "uniform"}}, "heads"},
      {{{"attention", "uniform"}, {"heads", "1"}, {"positions", "rotary"}}, "positions"},
      {{{"attention", "uniform"}, {"heads", "1"}, {"qk_norm", "rms-head"}}, "qk_norm"},
      {{{"positions", "rotary"}, {"heads", "64"}}, "positions"},
      {{{"ffn", "switch"}, {"placement", "normformer"}}, "ffn"},
      {{{"ffn", "switch"}, {"experts", "1000"}}, "capacity_factor"},
      {{{"schedule", "noam"}}, "warmup_steps"},
      {{{"schedule", "cosine"}, {"learning_rate_floor", "1"}}, "learning_rate_floor"},
      {{{"init", "deepnorm"}}, "init"},
      {{{"init", "admin"}}, "init"},
      {{{"norm", "dyt"}, {"norm_gain", "off"}}, "norm_gain"},
      {{{"data", "copy"}, {"sequence_length", "2"}}, "sequence_length"},
      {{{"data", "modular-addition"}, {"vocab_size", "2"}}, "vocab_size"},
      {{{"data", "gaussian"}, {"tie_embeddings", "on"}}, "tie_embeddings"},
      {{{"data", "text:alice"}, {"vocab_size", "64"}}, "vocab_size"},
      {{{"experts", "2"}}, "experts"},
  };
  for (const auto& [given, field] : cases) {
    EXPECT_THAT(CheckSpec(Spec(given), kMachine),
                ElementsAre(Field(&FieldViolation::field, std::string("spec.") + field)));
  }
}

TEST(SpecTest, AModelLargerThanTheMachineIsRefusedWithNumbers) {
  const auto wrong =
      CheckSpec(Spec({{"layers", "1024"}, {"d_model", "16384"}, {"heads", "1"}}), kMachine);
  ASSERT_THAT(wrong, SizeIs(1));
  EXPECT_THAT(wrong[0].description, HasSubstr("this machine has 8 GiB"));
}

TEST(SpecTest, OverridingOneWarmupDropsTheOther) {
  const v1::RunSpec merged =
      MergeSpecs(Spec({{"warmup_fraction", "0.5"}}), Spec({{"warmup_steps", "9"}}));
  EXPECT_FALSE(merged.has_warmup_fraction());
  EXPECT_EQ(EffectiveSpec(merged).warmup_steps(), 9);
}

TEST(DisplayNameTest, AnyTextOfOneLineAndThreeHundredBytes) {
  EXPECT_THAT(CheckDisplayName("display_name", "<b>\"=1+1\" · 🚀</b>"), IsEmpty());
  EXPECT_THAT(CheckDisplayName("display_name", std::string(300, 'x')), IsEmpty());
  for (const std::string& bad :
       {std::string(), std::string(301, 'x'), std::string("a\nb"), std::string("a\0b", 3),
        std::string("\x7F"), std::string("\xC0\xAF"), std::string("cut \xF0\x9F\x98")}) {
    EXPECT_THAT(CheckDisplayName("display_name", bad), SizeIs(1)) << bad;
  }
}

}  // namespace
}  // namespace normlab::domain
