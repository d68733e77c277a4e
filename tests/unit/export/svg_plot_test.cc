#include "server/export/svg_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "server/export/axis.h"
#include "server/export/palette.h"
#include "server/export/svg_parts.h"

namespace normlab::exporter {
namespace {

using testing::HasSubstr;
using testing::Not;

Curve Falling(const std::string& name, int64_t steps) {
  Curve curve = {"01", name, "", {{"loss", {}, {}}, {"gradient_norm", {}, {}}}};
  for (int64_t step = 1; step <= steps; ++step) {
    for (Series& series : curve.series) {
      series.steps.push_back(step);
      series.values.push_back(4.0 / static_cast<double>(step));
    }
  }
  return curve;
}

TEST(SvgPlotTest, ShowsBothPanelsNamesAndFinalValues) {
  const std::string svg = PlotSvg({Falling("Pre-Norm · no warmup", 100)},
                                  {.title = "article", .footnote = "from a test"});
  EXPECT_THAT(svg, HasSubstr(">loss</text>"));
  EXPECT_THAT(svg, HasSubstr("gradient norm"));
  EXPECT_THAT(svg, HasSubstr("Pre-Norm · no warmup"));
  EXPECT_THAT(svg, HasSubstr(">0.04</text>"));
  EXPECT_THAT(svg, HasSubstr("stroke=\"#2563eb\""));
}

TEST(SvgPlotTest, NamesCannotAddMarkup) {
  const std::string svg = PlotSvg({Falling("</text><script>&\x01\xff", 3)}, {});
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, HasSubstr("&lt;/text&gt;&lt;script&gt;&amp;\xEF\xBF\xBD\xEF\xBF\xBD"));
}

TEST(SvgPlotTest, ColoursOfOthersAreNotTrusted) {
  EXPECT_EQ(CurveColour("#138a72", 0), "#138a72");
  EXPECT_EQ(CurveColour("red\" onload=\"x", 1), "#dc5a3a");
}

TEST(SvgPlotTest, ASpikeInAMillionStepsIsDrawnAndTheFileStaysSmall) {
  Curve curve = Falling("long", 1'000'000);
  curve.series[0].values[654321] = 1e6;
  const std::string svg = PlotSvg({curve}, {});
  const std::string without = PlotSvg({Falling("long", 1'000'000)}, {});
  EXPECT_LT(svg.size(), 200'000u);
  // Only an axis that reaches the spike has this label.
  EXPECT_TRUE(svg.find(">10⁶</text>") != std::string::npos);
  EXPECT_TRUE(without.find(">10⁶</text>") == std::string::npos);
}

TEST(SvgPlotTest, NonFinitePointsAreMarkedAndBreakTheLine) {
  Curve curve = Falling("bad", 10);
  curve.series[0].values[5] = std::numeric_limits<double>::quiet_NaN();
  const std::string svg = PlotSvg({curve}, {});
  EXPECT_THAT(svg, HasSubstr("<title>bad: loss is NaN at step 6</title>"));
  EXPECT_THAT(svg, HasSubstr("not finite at step 6"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(SvgPlotTest, NothingToDrawIsStillAPicture) {
  EXPECT_THAT(PlotSvg({}, {}), HasSubstr("no points"));
  Curve zero = {"01", "zero", "", {{"loss", {1}, {0.0}}}};
  EXPECT_THAT(PlotSvg({zero}, {}), HasSubstr("1 points at or below 0"));
}

TEST(LogAxisTest, LabelsDecadesAndMoreWhereThereAreFew) {
  LogAxis wide;
  wide.Include(1e-3);
  wide.Include(4);
  std::vector<std::string> labels;
  for (const Tick& tick : wide.Ticks(7)) {
    if (!tick.label.empty()) labels.push_back(tick.label);
  }
  EXPECT_THAT(labels, testing::ElementsAre("0.001", "0.01", "0.1", "1"));
  LogAxis narrow;
  narrow.Include(3);
  narrow.Include(60);
  labels.clear();
  for (const Tick& tick : narrow.Ticks(7)) {
    if (!tick.label.empty()) labels.push_back(tick.label);
  }
  EXPECT_THAT(labels, testing::ElementsAre("5", "10", "20", "50"));
}

TEST(LogAxisTest, LessThanADecadeHasEvenLabels) {
  LogAxis axis;
  axis.Include(3.6);
  axis.Include(4.4);
  std::vector<std::string> labels;
  for (const Tick& tick : axis.Ticks(5)) labels.push_back(tick.label);
  EXPECT_THAT(labels, testing::ElementsAre("3.6", "3.8", "4", "4.2", "4.4"));
}

TEST(LogAxisTest, AFlatCurveHasAnAxisAroundIt) {
  LogAxis axis;
  axis.Include(1.0);
  axis.Pad();
  EXPECT_LT(axis.low(), 1.0);
  EXPECT_NEAR(axis.At(1.0), 0.5, 1e-9);
}

TEST(StepTicksTest, AreRound) {
  EXPECT_THAT(StepTicks(1, 180, 6), testing::ElementsAre(50, 100, 150));
  EXPECT_THAT(StepTicks(1, 30, 6), testing::ElementsAre(5, 10, 15, 20, 25, 30));
}

}  // namespace
}  // namespace normlab::exporter
