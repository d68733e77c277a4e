#include "server/export/heatmap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/non_finite.h"

namespace normlab::exporter {
namespace {

using testing::HasSubstr;
using testing::Not;

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

HeatmapPanel Panel(std::vector<std::vector<double>> values) {
  HeatmapPanel panel = {"placement pre", "layers", "learning_rate", {}, {}, std::move(values)};
  for (size_t i = 0; i < panel.values.size(); ++i) panel.rows.push_back(std::to_string(i + 1));
  for (size_t i = 0; i < panel.values[0].size(); ++i) {
    panel.columns.push_back(std::to_string(i).insert(0, 1, 'c'));
  }
  return panel;
}

// Fill of the cell that is labelled with `text`.
std::string FillOf(const std::string& svg, const std::string& text) {
  const size_t label = svg.find(">" + text + "</text>");
  const size_t box = svg.rfind("<rect", label);
  const size_t fill = svg.find("fill=\"", box) + 6;
  return svg.substr(fill, 7);
}

// Lightness L* (CIE 1976) of "#rrggbb": what is seen as even steps from dark to light.
double Lightness(const std::string& colour) {
  const auto channel = [&colour](size_t at) {
    const double share = std::stoi(colour.substr(at, 2), nullptr, 16) / 255.0;
    return share <= .04045 ? share / 12.92 : std::pow((share + .055) / 1.055, 2.4);
  };
  const double y = .2126 * channel(1) + .7152 * channel(3) + .0722 * channel(5);
  return 116 * std::cbrt(y) - 16;
}

TEST(HeatmapTest, EveryCellIsLabelledWithItsNumber) {
  const std::string svg =
      HeatmapSvg({"Depth", "final loss", "normlab", {Panel({{.001, .01}, {.1, 1}})}});
  for (const char* text : {"0.001", "0.01", "0.1", "layers", "learning_rate", "placement pre",
                           "Depth", "final loss", "c0", "c1"}) {
    EXPECT_THAT(svg, HasSubstr(std::string(">") + text + "</text>"));
  }
  EXPECT_EQ(svg.find("<svg"), 0u);
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
}

TEST(HeatmapTest, TheScaleIsLogarithmicAndSharedByThePanels) {
  const std::string svg = HeatmapSvg({"", "", "", {Panel({{.001, .1}}), Panel({{10}})}});
  EXPECT_EQ(FillOf(svg, "0.001"), HeatColour(0));
  EXPECT_EQ(FillOf(svg, "0.1"), HeatColour(.5));
  EXPECT_EQ(FillOf(svg, "10"), HeatColour(1));
}

TEST(HeatmapTest, WithANumberThatIsNotAboveZeroTheScaleIsLinear) {
  const std::string svg = HeatmapSvg({"", "", "", {Panel({{-2, 0, 6}})}});
  EXPECT_EQ(FillOf(svg, "-2"), HeatColour(0));
  EXPECT_EQ(FillOf(svg, "0"), HeatColour(.25));
  EXPECT_EQ(FillOf(svg, "6"), HeatColour(1));
}

TEST(HeatmapTest, WhatDivergedOrIsMissingIsSaidAndHasNoPlaceOnTheScale) {
  const std::string svg = HeatmapSvg({"", "", "", {Panel({{1, kInfinity, std::nan(""), 4}})}});
  EXPECT_EQ(Count(svg, ">diverged</text>"), 1u);
  EXPECT_EQ(Count(svg, ">none</text>"), 1u);
  EXPECT_EQ(FillOf(svg, "4"), HeatColour(1));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  const std::string nothing = HeatmapSvg({"", "", "", {Panel({{kInfinity}})}});
  EXPECT_THAT(nothing, HasSubstr("no values"));
  EXPECT_EQ(FillOf(HeatmapSvg({"", "", "", {Panel({{3}})}}), "3"), HeatColour(.5));
}

TEST(HeatmapTest, TextFromSettingsIsEscapedAndLongLabelsAreCut) {
  HeatmapPanel panel = Panel({{1, 2}});
  panel.columns = {"text:<b>&amp;", std::string(200, 'x')};
  const std::string svg = HeatmapSvg({"a < b", "", "", {panel}});
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
  EXPECT_THAT(svg, Not(HasSubstr(std::string(50, 'x'))));
}

// What makes it safe for the colour-blind: lightness alone tells the order.
TEST(HeatmapTest, LightnessRisesEvenlyAlongTheScale) {
  const double first = Lightness(HeatColour(0)), last = Lightness(HeatColour(1));
  EXPECT_GT(last - first, 70);
  double before = first;
  for (int i = 1; i <= 40; ++i) {
    const double now = Lightness(HeatColour(i / 40.0));
    EXPECT_GT(now, before) << i;
    EXPECT_NEAR(now, first + (last - first) * i / 40, 6) << i;
    before = now;
  }
}

}  // namespace
}  // namespace normlab::exporter
