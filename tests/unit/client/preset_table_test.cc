#include "client/preset_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "client/preset_picture.h"
#include "client/preset_table_report.h"
#include "tests/non_finite.h"

namespace normlab::client {
namespace {

using exporter::Curve;
using normlab::v1::Preset;
using normlab::v1::PresetTable;
using normlab::v1::Run;
using testing::ElementsAre;
using testing::HasSubstr;

struct Experiment {
  Preset preset;
  std::vector<Run> runs;
  std::vector<Curve> curves;

  void Add(const std::string& placement, int64_t layers, const exporter::Series& series,
           Run::State state = Run::STATE_SUCCEEDED) {
    Run run;
    run.set_state(state);
    run.mutable_effective_spec()->set_placement(placement);
    run.mutable_effective_spec()->set_layers(layers);
    *run.mutable_spec() = run.effective_spec();
    *preset.add_runs()->mutable_spec() = run.spec();
    runs.push_back(run);
    curves.push_back({"", placement, "", {series}});
  }
  void Expect(const std::string& row, const std::string& column, double low, double high) {
    auto* expected = preset.mutable_table()->add_expectations();
    expected->add_row(row);
    expected->set_column(column);
    expected->set_value((low + high) / 2);
    expected->set_minimum(low);
    expected->set_maximum(high);
  }
  PresetCells Cells(bool judge = true) const { return Tabulate(preset, runs, curves, judge); }
};

Experiment Losses() {
  Experiment experiment;
  experiment.preset.mutable_table()->set_quantity(PresetTable::QUANTITY_FINAL_LOSS);
  experiment.preset.mutable_table()->add_row_settings("placement");
  for (const double loss : {.2, .1, .6}) {
    experiment.Add("pre", 12, {"loss", {1, 2}, {4, loss}});
  }
  experiment.Add("post", 12, {"loss", {1, 2}, {4, 3}});
  experiment.Add("post", 12, {"loss", {1, 2}, {4, std::nan("")}}, Run::STATE_DIVERGED);
  experiment.Add("post", 12, {"loss", {1, 2}, {4, 2}});
  return experiment;
}

TEST(PresetTableTest, ALossIsTheMedianOfTheSeedsAndDivergingIsBeyondAll) {
  const PresetCells cells = Losses().Cells();
  ASSERT_EQ(cells.rows.size(), 2u);
  EXPECT_THAT(cells.rows[0].labels, ElementsAre("pre"));
  EXPECT_EQ(cells.rows[0].cells[0].value, .2);
  EXPECT_THAT(cells.rows[1].cells[0].values, ElementsAre(3, kInfinity, 2));
  EXPECT_EQ(cells.rows[1].cells[0].value, 3);
}

TEST(PresetTableTest, RunsThatFailedHaveNoValue) {
  Experiment experiment = Losses();
  experiment.runs[0].set_state(Run::STATE_FAILED);
  EXPECT_DOUBLE_EQ(experiment.Cells().rows[0].cells[0].value, (.1 + .6) / 2);
}

TEST(PresetTableTest, BandsHoldOrDoNot) {
  Experiment experiment = Losses();
  experiment.Expect("pre", "", .1, .3);
  experiment.Expect("post", "", 0, 1);
  PresetCells cells = experiment.Cells();
  EXPECT_EQ(cells.BandCount(), 2);
  EXPECT_EQ(cells.BrokenBandCount(), 1);
  EXPECT_FALSE(cells.rows[1].cells[0].Holds());
  EXPECT_EQ(experiment.Cells(/*judge=*/false).BandCount(), 0);
  // A value that is missing holds nothing.
  for (v1::Run& run : experiment.runs) run.set_state(Run::STATE_FAILED);
  EXPECT_EQ(experiment.Cells().BrokenBandCount(), 2);
}

TEST(PresetTableTest, MinusFirstComparesWithTheFirstRowOfThePresetOnly) {
  Experiment experiment = Losses();
  experiment.Expect("post", "minus first", 1, 5);
  const PresetCells cells = experiment.Cells();
  EXPECT_EQ(cells.rows[0].Find("minus first"), nullptr);
  EXPECT_DOUBLE_EQ(cells.rows[1].Find("minus first")->value, 3 - .2);
  experiment.runs.erase(experiment.runs.begin(), experiment.runs.begin() + 3);
  experiment.curves.erase(experiment.curves.begin(), experiment.curves.begin() + 3);
  EXPECT_EQ(experiment.Cells().rows[0].Find("minus first"), nullptr);
}

// y = L^-0.5 exactly, but for a depth below 6, which is of no law.
TEST(PresetTableTest, TheSlopeIsThatOfTheLogarithmsFromSixOn) {
  Experiment experiment;
  experiment.preset.mutable_table()->set_quantity(PresetTable::QUANTITY_LAST_FFN_GRADIENT);
  experiment.preset.mutable_table()->add_row_settings("placement");
  experiment.preset.mutable_table()->set_column_setting("layers");
  for (const int64_t layers : {1, 6, 24}) {
    const double value = layers == 1 ? 77 : std::pow(static_cast<double>(layers), -.5);
    const std::string name =
        "tensor/block_" + std::to_string(layers - 1) + "/mlp_out/kernel/gradient_norm";
    experiment.Add("pre", layers, {name, {1}, {value * .9}});
    experiment.Add("pre", layers, {name, {1}, {value * 1.1}});
    EXPECT_THAT(SeriesOfPreset(experiment.preset, experiment.runs.back()), testing::Contains(name));
  }
  experiment.Expect("pre", "slope", -.6, -.35);
  const PresetCells cells = experiment.Cells();
  EXPECT_DOUBLE_EQ(cells.rows[0].Find("6")->value, std::pow(6., -.5));  // the mean
  EXPECT_NEAR(cells.rows[0].Find("slope")->value, -.5, 1e-12);
  EXPECT_EQ(cells.BrokenBandCount(), 0);
  EXPECT_THAT(PresetPicture(experiment.preset, experiment.runs, experiment.curves, cells, ""),
              HasSubstr("slope -0.50"));
}

TEST(PresetTableTest, TheStreamIsSquaredAndHasABlockAColumn) {
  Experiment experiment;
  experiment.preset.mutable_table()->set_quantity(PresetTable::QUANTITY_STREAM);
  experiment.preset.mutable_table()->add_row_settings("placement");
  experiment.Add("pre", 2, {"block/1/stream_rms", {1}, {2}});
  experiment.curves[0].series.push_back({"block/2/stream_rms", {1}, {3}});
  const PresetCells cells = experiment.Cells();
  EXPECT_EQ(cells.rows[0].Find("1")->value, 4);
  EXPECT_EQ(cells.rows[0].Find("2")->value, 9);
  EXPECT_EQ(cells.column_title, "block");
}

TEST(PresetTableTest, TheGaugeIsTheMeanOverBlocksAndTheLargestOfAll) {
  v1::Run run;
  run.mutable_effective_spec()->set_layers(2);
  Curve curve;
  EXPECT_FALSE(IdentityPathOf(run, curve));
  for (const auto& [name, first, second] :
       {std::tuple("gain", 1., 2.), {"distance", 0., 1.}, {"largest", 5., 4.}}) {
    curve.series.push_back({BlockSeries(1, std::string("jacobian_") + name), {1}, {first}});
    curve.series.push_back({BlockSeries(2, std::string("jacobian_") + name), {1}, {second}});
  }
  const auto path = IdentityPathOf(run, curve);
  ASSERT_TRUE(path);
  EXPECT_EQ(path->gain, 1.5);
  EXPECT_EQ(path->distance, .5);
  EXPECT_EQ(path->largest, 5);
}

TEST(PresetTableTest, CsvHasEveryCellWithItsBand) {
  Experiment experiment = Losses();
  experiment.Expect("pre", "", .125, .375);
  EXPECT_EQ(CellsCsv(experiment.Cells()),
            "placement,column,value,low,high,runs,expected,minimum,maximum,holds\n"
            "pre,,0.2,0.1,0.6,3,0.25,0.125,0.375,true\n"
            "post,,3,2,Infinity,3,,,,\n");
}

}  // namespace
}  // namespace normlab::client
