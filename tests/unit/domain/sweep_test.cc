#include "server/domain/sweep.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/domain/settings.h"
#include "server/domain/violations.h"

namespace normlab::domain {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

v1::SweepAxis& AddAxis(v1::Sweep& sweep, const std::string& setting,
                       const std::vector<std::string>& values = {}) {
  v1::SweepAxis& axis = *sweep.add_axes();
  axis.set_setting(setting);
  for (const std::string& value : values) axis.add_values(value);
  return axis;
}

v1::SweepRange& AddRange(v1::Sweep& sweep, const std::string& setting, double minimum,
                         double maximum, int count = 0, bool logarithmic = false) {
  v1::SweepRange& range = *AddAxis(sweep, setting).mutable_range();
  range.set_minimum(minimum);
  range.set_maximum(maximum);
  range.set_count(count);
  range.set_logarithmic(logarithmic);
  return range;
}

std::vector<SweepRun> Expand(const v1::Sweep& sweep) {
  const absl::StatusOr<std::vector<SweepRun>> runs = ExpandSweep(sweep);
  EXPECT_TRUE(runs.ok()) << runs.status();
  return runs.ok() ? *runs : std::vector<SweepRun>();
}

std::vector<std::string> Names(const v1::Sweep& sweep) {
  std::vector<std::string> names;
  for (const SweepRun& run : Expand(sweep)) names.push_back(run.name);
  return names;
}

std::vector<FieldViolation> Wrong(const v1::Sweep& sweep) {
  return Violations(ExpandSweep(sweep).status());
}

auto At(const std::string& field, const std::string& words) {
  return Contains(AllOf(Field(&FieldViolation::field, field),
                        Field(&FieldViolation::description, HasSubstr(words))));
}

// --- grids and lists ---

TEST(SweepTest, AGridIsEveryCombinationWithTheLastAxisFastest) {
  v1::Sweep sweep;
  sweep.mutable_base()->set_steps(40);
  AddAxis(sweep, "layers", {"2", "6"});
  AddAxis(sweep, "learning-rate", {"5e-4", "2e-3"});
  AddAxis(sweep, "placement", {"pre", "post"});
  EXPECT_THAT(Names(sweep), ElementsAre("layers=2 learning_rate=5e-04 placement=pre",
                                        "layers=2 learning_rate=5e-04 placement=post",
                                        "layers=2 learning_rate=0.002 placement=pre",
                                        "layers=2 learning_rate=0.002 placement=post",
                                        "layers=6 learning_rate=5e-04 placement=pre",
                                        "layers=6 learning_rate=5e-04 placement=post",
                                        "layers=6 learning_rate=0.002 placement=pre",
                                        "layers=6 learning_rate=0.002 placement=post"));
  const v1::RunSpec last = Expand(sweep).back().spec;
  EXPECT_EQ(last.layers(), 6);
  EXPECT_EQ(last.learning_rate(), 2e-3);
  EXPECT_EQ(last.placement(), "post");
  EXPECT_EQ(last.steps(), 40);
  EXPECT_FALSE(last.has_heads());
}

TEST(SweepTest, AnAxisOfOneValueIsNotInTheNames) {
  v1::Sweep sweep;
  AddAxis(sweep, "layers", {"6"});
  AddAxis(sweep, "seed", {"1", "2"});
  EXPECT_THAT(Names(sweep), ElementsAre("seed=1", "seed=2"));
  for (const SweepRun& run : Expand(sweep)) EXPECT_EQ(run.spec.layers(), 6);
}

TEST(SweepTest, ASingleRunIsNamedByWhatIsItsOwn) {
  v1::Sweep sweep;
  sweep.mutable_base()->set_steps(40);
  AddAxis(sweep, "layers", {"6"});
  EXPECT_THAT(Names(sweep), ElementsAre("layers=6"));
}

TEST(SweepTest, LinearNumbersIncludeBothEndsAndAreEvenlyApart) {
  v1::Sweep sweep;
  AddRange(sweep, "dropout", 0.1, 0.4, 7);
  const std::vector<SweepRun> runs = Expand(sweep);
  ASSERT_THAT(runs, SizeIs(7));
  for (int i = 0; i < 7; ++i) EXPECT_NEAR(runs[i].spec.dropout(), .1 + .05 * i, 1e-7);
  EXPECT_EQ(runs.front().spec.dropout(), .1);
  EXPECT_EQ(runs.back().spec.dropout(), .4);
}

TEST(SweepTest, LogarithmicNumbersHaveEqualRatios) {
  v1::Sweep doubling;
  AddRange(doubling, "learning_rate", 5e-4, 8e-3, 5, true);
  std::vector<double> rates;
  for (const SweepRun& run : Expand(doubling)) rates.push_back(run.spec.learning_rate());
  EXPECT_THAT(rates, ElementsAre(5e-4, 1e-3, 2e-3, 4e-3, 8e-3));  // not 0.0010000000000000002
  v1::Sweep uneven;
  AddRange(uneven, "learning_rate", 1e-5, 3e-2, 23, true);
  const std::vector<SweepRun> runs = Expand(uneven);
  ASSERT_THAT(runs, SizeIs(23));
  for (int i = 0; i < 23; ++i) {
    // Closed form: minimum (maximum / minimum)^(i / 22), to half of the sixth digit.
    const double expected = 1e-5 * std::pow(3e-2 / 1e-5, i / 22.0);
    EXPECT_NEAR(runs[i].spec.learning_rate() / expected, 1, 5e-6) << i;
  }
}

TEST(SweepTest, NeighboursThatAreNearAreToldApart) {
  v1::Sweep sweep;
  AddRange(sweep, "beta2", 0.99999, 0.999999, 100);
  const std::vector<SweepRun> runs = Expand(sweep);
  ASSERT_THAT(runs, SizeIs(100));
  for (int i = 0; i < 100; ++i) {
    EXPECT_NEAR(runs[i].spec.beta2(), .99999 + 9e-6 * i / 99, 1e-12);
  }
  for (int i = 1; i < 100; ++i) EXPECT_GT(runs[i].spec.beta2(), runs[i - 1].spec.beta2());
}

TEST(SweepTest, IntegersOfARangeAreWhole) {
  v1::Sweep seeds;
  AddRange(seeds, "seed", 0, 4, 5);
  EXPECT_THAT(Names(seeds), ElementsAre("seed=0", "seed=1", "seed=2", "seed=3", "seed=4"));
  v1::Sweep layers;
  AddRange(layers, "layers", 1, 48, 5, true);  // 1, 2.63, 6.93, 18.2, 48
  EXPECT_THAT(Names(layers),
              ElementsAre("layers=1", "layers=3", "layers=7", "layers=18", "layers=48"));
}

TEST(SweepTest, AListIsMergedOntoTheBaseEntryByEntry) {
  v1::Sweep sweep;
  sweep.mutable_base()->set_layers(6);
  sweep.mutable_base()->set_warmup_fraction(.5);
  sweep.add_list()->set_placement("post");
  v1::RunSpec& second = *sweep.add_list();
  second.set_placement("pre");
  second.set_warmup_steps(10);
  const std::vector<SweepRun> runs = Expand(sweep);
  ASSERT_THAT(runs, SizeIs(2));
  EXPECT_EQ(runs[0].spec.warmup_fraction(), .5);
  EXPECT_FALSE(runs[1].spec.has_warmup_fraction());  // the two exclude each other
  EXPECT_EQ(runs[1].spec.layers(), 6);
  EXPECT_THAT(runs[1].name, HasSubstr("placement=pre"));
  EXPECT_THAT(runs[1].name, HasSubstr("warmup_steps=10"));
}

TEST(SweepTest, EachEntryOfAListHasEveryCombinationOfTheAxes) {
  v1::Sweep sweep;
  sweep.add_list()->set_placement("pre");
  sweep.add_list()->set_placement("post");
  AddAxis(sweep, "seed", {"1", "2"});
  EXPECT_THAT(Names(sweep), ElementsAre("seed=1 placement=pre", "seed=2 placement=pre",
                                        "seed=1 placement=post", "seed=2 placement=post"));
}

TEST(SweepTest, AutoIsAValueOfAnAxis) {
  v1::Sweep sweep;
  sweep.mutable_base()->set_ffn_width(32);
  AddAxis(sweep, "ffn_width", {"auto", "512"});
  const std::vector<SweepRun> runs = Expand(sweep);
  EXPECT_THAT(Names(sweep), ElementsAre("ffn_width=auto", "ffn_width=512"));
  EXPECT_FALSE(runs[0].spec.has_ffn_width());
}

TEST(SweepTest, NamesThatWouldBeTooLongAreNumbers) {
  v1::Sweep sweep;
  AddAxis(sweep, "data", {"text:" + std::string(400, 'a'), "arithmetic"});
  EXPECT_THAT(Names(sweep), ElementsAre("run 1 of 2", "data=arithmetic"));
}

// --- draws ---

// Draws of one setting; a second, continuous axis keeps samples apart whose values are the same.
std::vector<v1::RunSpec> Draws(v1::Sweep sweep, int samples, uint64_t seed) {
  AddRange(sweep, "weight_decay", 0, 1);
  sweep.set_samples(samples);
  sweep.set_sample_seed(seed);
  std::vector<v1::RunSpec> specs;
  for (SweepRun& run : Expand(sweep)) specs.push_back(std::move(run.spec));
  EXPECT_THAT(specs, SizeIs(samples));
  return specs;
}

// The largest distance between the values' distribution and `cdf` (Kolmogorov and Smirnov), in
// units of 1 / sqrt(n): above 1.95 for one sequence in a thousand.
double Distance(std::vector<double> values, const std::function<double(double)>& cdf) {
  std::ranges::sort(values);
  const auto n = static_cast<double>(values.size());
  double distance = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = cdf(values[i]);
    distance = std::max({distance, std::abs(expected - static_cast<double>(i) / n),
                         std::abs(expected - static_cast<double>(i + 1) / n)});
  }
  return distance * std::sqrt(n);
}

// How far the counts are from n p, in standard deviations: the largest of all.
double LargestDeviation(const std::map<int64_t, int>& counts, int n,
                        const std::function<double(int64_t)>& probability) {
  double largest = 0;
  for (const auto& [value, count] : counts) {
    const double p = probability(value);
    largest = std::max(largest, std::abs(count - n * p) / std::sqrt(n * p * (1 - p)));
  }
  return largest;
}

TEST(SweepTest, DrawsFollowTheDistributionThatWasAskedFor) {
  v1::Sweep sweep;
  AddRange(sweep, "learning_rate", 1e-4, 1e-2, 0, true);
  AddRange(sweep, "dropout", 0.1, 0.5);
  for (const uint64_t seed : {1, 2, 3}) {
    std::vector<double> rates, dropouts;
    for (const v1::RunSpec& spec : Draws(sweep, 5000, seed)) {
      rates.push_back(spec.learning_rate());
      dropouts.push_back(spec.dropout());
    }
    EXPECT_LT(Distance(rates, [](double x) { return std::log(x / 1e-4) / std::log(100); }), 1.95);
    EXPECT_LT(Distance(dropouts, [](double x) { return (x - .1) / .4; }), 1.95);
    EXPECT_GE(*std::ranges::min_element(rates), 1e-4);
    EXPECT_LE(*std::ranges::max_element(rates), 1e-2);
  }
}

TEST(SweepTest, DrawnIntegersAreNotRarerAtTheEnds) {
  v1::Sweep sweep;
  AddRange(sweep, "layers", 1, 4);
  AddRange(sweep, "seed", 2, 40, 0, true);
  constexpr int kSamples = 8000;
  std::map<int64_t, int> layers, seeds;
  for (const v1::RunSpec& spec : Draws(sweep, kSamples, 11)) {
    ++layers[spec.layers()];
    ++seeds[spec.seed()];
  }
  ASSERT_THAT(layers, SizeIs(4));
  EXPECT_LT(LargestDeviation(layers, kSamples, [](int64_t) { return .25; }), 4);
  ASSERT_THAT(seeds, SizeIs(39));
  EXPECT_LT(LargestDeviation(seeds, kSamples,
                             [](int64_t k) {
                               const auto x = static_cast<double>(k);
                               return std::log((x + .5) / (x - .5)) / std::log(40.5 / 1.5);
                             }),
            4);
}

TEST(SweepTest, DrawnValuesAreEquallyOften) {
  v1::Sweep sweep;
  AddAxis(sweep, "placement", {"pre", "post", "sandwich"});
  std::map<std::string, int> counts;
  for (const v1::RunSpec& spec : Draws(sweep, 6000, 5)) ++counts[spec.placement()];
  ASSERT_THAT(counts, SizeIs(3));
  for (const auto& [placement, count] : counts) {
    EXPECT_NEAR(count, 2000, 4 * std::sqrt(6000 * 2 / 9.0)) << placement;
  }
}

TEST(SweepTest, DrawsAreTheStatedGeneratorsAndDependOnItsSeedAlone) {
  v1::Sweep sweep;
  AddRange(sweep, "dropout", 0, 0.5);
  // The first output of the 64-bit Mersenne twister with its standard seed.
  EXPECT_NEAR(Draws(sweep, 1, 5489).front().dropout(), .5 * 14514284786278117030.0 / 0x1p64, 1e-6);
  const auto values = [&sweep](int samples, uint64_t seed) {
    std::vector<double> drawn;
    for (const v1::RunSpec& spec : Draws(sweep, samples, seed)) drawn.push_back(spec.dropout());
    return drawn;
  };
  const std::vector<double> twenty = values(20, 1);
  EXPECT_EQ(twenty, values(20, 1));
  EXPECT_NE(twenty, values(20, 2));
  // Asking for more begins with the same ones.
  const std::vector<double> thirty = values(30, 1);
  EXPECT_EQ(twenty, std::vector<double>(thirty.begin(), thirty.begin() + 20));
}

TEST(SweepTest, EachEntryOfAListHasTheSameDraws) {
  v1::Sweep sweep;
  AddRange(sweep, "learning_rate", 1e-4, 1e-2, 0, true);
  sweep.set_samples(7);
  sweep.add_list()->set_placement("pre");
  sweep.add_list()->set_placement("post");
  const std::vector<SweepRun> runs = Expand(sweep);
  ASSERT_THAT(runs, SizeIs(14));
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(runs[i].spec.learning_rate(), runs[7 + i].spec.learning_rate());
    EXPECT_EQ(runs[i].spec.placement(), "pre");
    EXPECT_EQ(runs[7 + i].spec.placement(), "post");
  }
}

TEST(SweepTest, SamplesDifferFromOneAnotherAndMoreThanThereAreIsRefused) {
  v1::Sweep sweep;
  AddRange(sweep, "layers", 1, 3);
  AddAxis(sweep, "placement", {"pre", "post"});
  sweep.set_samples(6);
  std::set<std::string> names;
  for (const std::string& name : Names(sweep)) names.insert(name);
  EXPECT_THAT(names, SizeIs(6));
  sweep.set_samples(7);
  EXPECT_THAT(Wrong(sweep), At("sweep.samples", "after 6 samples nothing new is drawn"));
}

// --- what is refused ---

TEST(SweepTest, EveryFaultSaysItsPlace) {
  v1::Sweep sweep;
  AddAxis(sweep, "layer", {"1"});
  AddAxis(sweep, "heads", {"1", "2", "many", "-3"});
  AddAxis(sweep, "placement");
  AddAxis(sweep, "heads", {"1"});
  AddRange(sweep, "placement", 1, 2, 2);
  AddAxis(sweep, "on_interrupt", {"fail"});
  AddAxis(sweep, "dropout", {"0.1"}).mutable_range()->set_count(2);
  AddAxis(sweep, "learning_rate", {"0.001", "2e-3", "1e-3"});
  sweep.mutable_base()->set_steps(-1);
  sweep.add_list()->set_placement("before");
  sweep.add_list()->set_heads(2);
  const std::vector<FieldViolation> wrong = Wrong(sweep);
  EXPECT_THAT(wrong, At("sweep.axes[0].setting", "no setting \"layer\"; did you mean layers?"));
  EXPECT_THAT(wrong, At("sweep.axes[1].values[2]", "\"many\" is not an integer"));
  EXPECT_THAT(wrong, At("sweep.axes[1].values[3]", "too small"));
  EXPECT_THAT(wrong, At("sweep.axes[2]", "neither values nor a range"));
  EXPECT_THAT(wrong, At("sweep.axes[3].setting", "heads is axes[1] already"));
  EXPECT_THAT(wrong, At("sweep.axes[4].range", "placement is no number"));
  EXPECT_THAT(wrong, At("sweep.axes[5].setting", "on_interrupt"));
  EXPECT_THAT(wrong, At("sweep.axes[6]", "values and a range"));
  EXPECT_THAT(wrong, At("sweep.axes[7].values[2]", "is 0.001 like values[0]"));
  EXPECT_THAT(wrong, At("sweep.base.steps", "too small"));
  EXPECT_THAT(wrong, At("sweep.list[0].placement", "before"));
  EXPECT_THAT(wrong, At("sweep.list[1].heads", "is the setting of an axis"));
}

TEST(SweepTest, RangesWithoutSenseAreRefused) {
  const auto of = [](const char* setting, double minimum, double maximum, int count,
                     bool logarithmic = false) {
    v1::Sweep sweep;
    AddRange(sweep, setting, minimum, maximum, count, logarithmic);
    return Wrong(sweep);
  };
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(of("layers", 6, 2, 3), At("sweep.axes[0].range", "not below"));
  EXPECT_THAT(of("layers", 2, 2, 3), At("sweep.axes[0].range", "not below"));
  EXPECT_THAT(of("layers", 1.5, 3, 3), At("sweep.axes[0].range.minimum", "integers"));
  EXPECT_THAT(of("layers", -4, 3, 3), At("sweep.axes[0].range.minimum", "too small"));
  EXPECT_THAT(of("layers", 1, 9, 1), At("sweep.axes[0].range.count", "at least 2"));
  EXPECT_THAT(of("layers", 1, 3, 4), At("sweep.axes[0].range.count", "both 2"));
  EXPECT_THAT(of("seed", 1, 2e4, 20'000), At("sweep.axes[0].range.count", "more than the 10000"));
  EXPECT_THAT(of("seed", 0, 9, 3, true), At("sweep.axes[0].range.minimum", "above 0"));
  EXPECT_THAT(of("dropout", 0, 2, 3), At("sweep.axes[0].range.maximum", "too large"));
  EXPECT_THAT(of("learning_rate", 1e-4, infinity, 3),
              At("sweep.axes[0].range.maximum", "not a finite number"));
  EXPECT_THAT(of("learning_rate", NAN, 1, 3),
              At("sweep.axes[0].range.minimum", "not a finite number"));
}

TEST(SweepTest, NothingToVaryAndTooManyRunsAreRefused) {
  EXPECT_THAT(Wrong({}), At("sweep", "nothing to vary"));
  v1::Sweep draws;
  draws.add_list()->set_layers(2);
  draws.set_samples(3);
  EXPECT_THAT(Wrong(draws), At("sweep.samples", "no axes"));
  draws.set_samples(-1);
  EXPECT_THAT(Wrong(draws), At("sweep.samples", "negative"));

  v1::Sweep most;
  AddRange(most, "seed", 1, 5000, 5000);
  AddAxis(most, "layers", {"1", "2"});
  EXPECT_THAT(Expand(most), SizeIs(10'000));
  most.mutable_axes(1)->add_values("3");
  EXPECT_THAT(Wrong(most), At("sweep", "more than the 10000"));
  // 5000^8 would not fit a number of 64 bits.
  v1::Sweep huge;
  for (const char* setting : {"seed", "steps", "batch_size", "vocab_size", "sequence_length"}) {
    AddRange(huge, setting, 2, 4097, 4096);
  }
  AddRange(huge, "learning_rate", 1e-5, 1e-1, 10'000);
  EXPECT_THAT(Wrong(huge), At("sweep", "more than the 10000"));
}

TEST(SweepTest, RunsThatWouldTrainTheSameAreRefusedByName) {
  v1::Sweep sweep;
  AddAxis(sweep, "placement", {"post", "pre"});
  AddAxis(sweep, "final_norm", {"auto", "off"});  // auto is off for post
  EXPECT_THAT(Wrong(sweep), ElementsAre(Field(&FieldViolation::description,
                                              HasSubstr("placement=post final_norm=off trains "
                                                        "what placement=post final_norm=auto"))));
  v1::Sweep list;
  list.add_list()->set_layers(3);
  list.add_list()->set_layers(12);
  list.add_list();  // the default is 12
  EXPECT_THAT(Wrong(list), At("sweep.list[2]", "the same run twice"));
}

TEST(SweepTest, AnEarlyStopMustHaveSense) {
  v1::Sweep sweep;
  sweep.mutable_base()->set_steps(100);
  AddAxis(sweep, "seed", {"1", "2"});
  v1::EarlyStop& stop = *sweep.mutable_early_stop();
  EXPECT_THAT(Wrong(sweep), At("sweep.early_stop.steps", "names no step"));
  EXPECT_THAT(Wrong(sweep), At("sweep.early_stop.quantile", "above 0, below 1"));
  for (const int64_t step : {0, 40, 40, 100}) stop.add_steps(step);
  stop.set_quantile(std::numeric_limits<double>::quiet_NaN());
  stop.set_minimum_peers(-1);
  EXPECT_THAT(Wrong(sweep), At("sweep.early_stop.steps[0]", "too small"));
  EXPECT_THAT(Wrong(sweep), At("sweep.early_stop.steps[2]", "must rise"));
  EXPECT_THAT(Wrong(sweep), At("sweep.early_stop.steps[3]", "the longest has 100 steps"));
  EXPECT_THAT(Wrong(sweep), At("sweep.early_stop.quantile", "above 0, below 1"));
  EXPECT_THAT(Wrong(sweep), At("sweep.early_stop.minimum_peers", "negative"));
  stop.clear_steps();
  stop.add_steps(40);
  stop.add_steps(99);
  stop.set_quantile(.5);
  stop.set_minimum_peers(0);
  EXPECT_THAT(Expand(sweep), SizeIs(2));
}

}  // namespace
}  // namespace normlab::domain
