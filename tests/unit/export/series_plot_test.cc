#include "server/export/series_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace normlab::exporter {
namespace {

using testing::HasSubstr;
using testing::Not;

PlotLine Line(const std::string& name) {
  return {.name = name,
          .colour = "#138a72",
          .x = {1, 2, 6, 12},
          .y = {.5, .4, .3, .25},
          .low = {.45, .35, .25, .2},
          .high = {.55, .45, .35, .3},
          .expected = {.52, NAN, .31, .24},
          .note = "slope -0.42"};
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(SeriesPlotTest, DrawsLineBandDotsExpectationsAndNote) {
  const std::string svg =
      SeriesPlotSvg({"Depth", "normlab", {{"gradient norm", "layers", true, true, {Line("pre")}}}});
  EXPECT_EQ(Count(svg, "class=\"line\" stroke=\"#138a72\""), 1u);
  EXPECT_EQ(Count(svg, "class=\"band\" fill=\"#138a72\""), 1u);
  EXPECT_EQ(Count(svg, "r=\"2.5\""), 4u);
  EXPECT_EQ(Count(svg, "class=\"expected\""), 3u);  // there is none at 2
  EXPECT_THAT(svg, HasSubstr(">slope -0.42</text>"));
  EXPECT_THAT(svg, HasSubstr(">layers</text>"));
}

// On a logarithmic axis from 1 to 4, 2 stands in the middle; on a straight one it does not.
TEST(SeriesPlotTest, AxesAreLogarithmicOrStraight) {
  PlotLine line = {.name = "a", .x = {1, 2, 4}, .y = {1, 2, 4}};
  const auto middle = [&line](bool log_x) {
    const std::string svg = SeriesPlotSvg({"", "", {{"", "", log_x, true, {line}}}});
    std::vector<double> x;
    for (size_t at = svg.find("<circle cx=\""); at != std::string::npos;
         at = svg.find("<circle cx=\"", at + 1)) {
      x.push_back(std::stod(svg.substr(at + 12)));
    }
    EXPECT_EQ(x.size(), 3u);
    return (x[1] - x[0]) / (x[2] - x[0]);
  };
  EXPECT_NEAR(middle(true), 1. / 2, 1e-3);
  EXPECT_NEAR(middle(false), 1. / 3, 1e-3);
}

TEST(SeriesPlotTest, WhatCannotBeDrawnBreaksTheLineAndNothingElse) {
  PlotLine line = {.name = "<b>", .x = {1, 2, 3, 4}, .y = {1, NAN, 0, 2}};
  const std::string svg = SeriesPlotSvg({"t", "", {{"", "", false, true, {line}}}});
  EXPECT_EQ(Count(svg, "r=\"2.5\""), 2u);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, HasSubstr("&lt;b&gt;"));
}

TEST(SeriesPlotTest, NothingToDrawIsSaid) {
  EXPECT_THAT(SeriesPlotSvg({"t", "", {{"loss", "step", false, false, {}}}}),
              HasSubstr("no points"));
  EXPECT_THAT(SeriesPlotSvg({"t", "", {}}), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace normlab::exporter
