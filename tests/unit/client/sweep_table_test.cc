#include "client/sweep_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "client/preset_table_report.h"
#include "client/result_grid.h"
#include "server/domain/settings.h"
#include "server/domain/spec.h"
#include "server/domain/sweep.h"
#include "tests/non_finite.h"

namespace normlab::client {
namespace {

using exporter::Curve;
using normlab::v1::PresetTable;
using normlab::v1::Run;
using normlab::v1::Sweep;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

void AddAxis(Sweep& sweep, const std::string& setting, const std::vector<std::string>& values) {
  auto* axis = sweep.add_axes();
  axis->set_setting(setting);
  for (const std::string& value : values) axis->add_values(value);
}

std::vector<Run> RunsOf(const Sweep& sweep) {
  std::vector<Run> runs;
  const std::vector<domain::SweepRun> expanded = domain::ExpandSweep(sweep).value();
  for (const domain::SweepRun& made : expanded) {
    Run& run = runs.emplace_back();
    *run.mutable_spec() = made.spec;
    *run.mutable_effective_spec() = domain::EffectiveSpec(made.spec);
    run.set_state(Run::STATE_SUCCEEDED);
  }
  return runs;
}

// The table with `losses` of the runs, one by one.
PresetCells CellsOf(const Sweep& sweep, const std::vector<double>& losses) {
  auto runs = RunsOf(sweep);
  normlab::v1::Preset preset;
  *preset.mutable_table() = TableOfSweep(sweep, runs);
  std::vector<Curve> curves;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!std::isfinite(losses.at(i))) runs[i].set_state(Run::STATE_DIVERGED);
    curves.push_back({"", "", "", {{"loss", {1}, {losses.at(i)}}}});
  }
  return Tabulate(preset, runs, curves, false);
}

TEST(SweepTableTest, TheFirstTwoSettingsAreRowsAndColumnsAndSeedsAreMedians) {
  Sweep sweep;
  AddAxis(sweep, "layers", {"2", "6"});
  AddAxis(sweep, "learning_rate", {"0.001", "0.004", "0.016"});
  AddAxis(sweep, "seed", {"1", "2", "3"});
  std::vector<double> losses;
  for (int cell = 0; cell < 6; ++cell) {
    for (const double seed : {.5, 0.0, .25}) losses.push_back(cell + 1 + seed);
  }
  losses.back() = kInfinity;  // the median of 6, 6.5 and that
  const PresetCells cells = CellsOf(sweep, losses);
  ASSERT_TRUE(IsGrid(cells));
  const std::vector<ResultGrid> grids = GridsOf(cells);
  ASSERT_THAT(grids, SizeIs(1));
  EXPECT_EQ(grids[0].title, "");
  EXPECT_THAT(grids[0].rows, ElementsAre("2", "6"));
  EXPECT_THAT(grids[0].columns, ElementsAre("0.001", "0.004", "0.016"));
  EXPECT_EQ(grids[0].cells[0][1]->value, 2.25);
  EXPECT_EQ(grids[0].cells[1][2]->value, 6.5);
  EXPECT_THAT(grids[0].cells[1][2]->values, SizeIs(3));
}

TEST(SweepTableTest, FurtherSettingsMakeOneGridEach) {
  Sweep sweep;
  AddAxis(sweep, "layers", {"2", "6"});
  AddAxis(sweep, "seed", {"1", "2"});
  AddAxis(sweep, "learning_rate", {"0.001", "0.004"});
  AddAxis(sweep, "placement", {"pre", "post"});
  std::vector<double> losses(16);
  for (size_t i = 0; i < losses.size(); ++i) losses[i] = static_cast<double>(i);
  const PresetCells cells = CellsOf(sweep, losses);
  const std::vector<ResultGrid> grids = GridsOf(cells);
  ASSERT_THAT(grids, SizeIs(2));
  EXPECT_EQ(grids[0].title, "placement pre");
  EXPECT_EQ(grids[1].title, "placement post");
  // layers 6, learning_rate 0.004, post: runs 8 + 3 and 12 + 3.
  EXPECT_EQ(grids[1].cells[1][1]->value, 13);
  const exporter::Heatmap heatmap = HeatmapOf(cells, "title", "footnote");
  ASSERT_THAT(heatmap.panels, SizeIs(2));
  EXPECT_EQ(heatmap.panels[1].values[1][1], 13);
  EXPECT_EQ(heatmap.panels[1].row_title, "layers");
  EXPECT_EQ(heatmap.panels[1].column_title, "learning_rate");
}

TEST(SweepTableTest, DrawsAreRowsOfTheirOwnFromTheBestToTheWorst) {
  Sweep sweep;
  AddAxis(sweep, "placement", {"pre", "post"});
  auto* axis = sweep.add_axes();
  axis->set_setting("learning_rate");
  axis->mutable_range()->set_minimum(1e-4);
  axis->mutable_range()->set_maximum(1e-2);
  sweep.set_samples(8);
  PresetCells cells = CellsOf(sweep, {5, 2, kInfinity, 4, 1, 7, 3, 6});
  EXPECT_FALSE(IsGrid(cells));
  EXPECT_THAT(cells.label_titles, ElementsAre("placement", "learning_rate"));
  cells.rows[0].cells[0].value = std::nan("");
  OrderByLoss(cells);
  std::vector<double> ordered;
  for (const TableRow& row : cells.rows) ordered.push_back(row.cells[0].value);
  ASSERT_THAT(ordered, SizeIs(8));
  EXPECT_THAT(std::vector<double>(ordered.begin(), ordered.end() - 1),
              ElementsAre(1, 2, 3, 4, 6, 7, kInfinity));
  EXPECT_TRUE(std::isnan(ordered.back()));
}

TEST(SweepTableTest, DrawnNumbersAreOrderedAndEverythingElseStays) {
  Sweep sweep;
  auto* axis = sweep.add_axes();
  axis->set_setting("layers");
  axis->mutable_range()->set_minimum(1);
  axis->mutable_range()->set_maximum(40);
  sweep.set_samples(12);
  sweep.add_list()->set_placement("pre");
  sweep.add_list()->set_placement("post");
  auto runs = RunsOf(sweep);
  OrderDraws(sweep, runs);
  for (size_t i = 2; i < runs.size(); ++i) {
    EXPECT_GE(runs[i].spec().layers(), runs[i - 1].spec().layers());
  }
  EXPECT_EQ(runs[0].spec().placement(), "pre");
  EXPECT_EQ(runs[1].spec().placement(), "post");
  Sweep grid;
  AddAxis(grid, "layers", {"6", "2"});
  auto given = RunsOf(grid);
  OrderDraws(grid, given);
  EXPECT_EQ(given[0].spec().layers(), 6);
}

TEST(SweepTableTest, OneSettingHasRowsAndNoColumnsAndSeedsAloneAreOneRow) {
  Sweep one;
  AddAxis(one, "layers", {"2", "6"});
  EXPECT_THAT(TableOfSweep(one, RunsOf(one)).row_settings(), ElementsAre("layers"));
  EXPECT_EQ(TableOfSweep(one, RunsOf(one)).column_setting(), "");
  Sweep seeds;
  AddAxis(seeds, "seed", {"1", "2", "3"});
  const PresetCells cells = CellsOf(seeds, {3, 1, 2});
  ASSERT_THAT(cells.rows, SizeIs(1));
  EXPECT_THAT(cells.rows[0].labels, IsEmpty());
  EXPECT_EQ(cells.rows[0].cells[0].value, 2);
}

TEST(SweepTableTest, WhereAListHasNoRunTheGridHasNoCell) {
  Sweep sweep;
  for (const auto& [layers, placement] :
       {std::pair(2, "pre"), std::pair(2, "post"), std::pair(6, "pre")}) {
    auto* entry = sweep.add_list();
    entry->set_layers(layers);
    entry->set_placement(placement);
  }
  const PresetCells cells = CellsOf(sweep, {1, 2, 3});
  const std::vector<ResultGrid> grids = GridsOf(cells);
  ASSERT_THAT(grids, SizeIs(1));
  EXPECT_TRUE(std::isnan(HeatmapOf(cells, "", "").panels[0].values[1][1]));
  int empty = 0;
  for (const auto& row : grids[0].cells) {
    for (const TableCell* cell : row) empty += cell == nullptr;
  }
  EXPECT_EQ(empty, 1);
}

TEST(SweepTableTest, LabelsWithCommasAreQuotedInTheFile) {
  Sweep sweep;
  AddAxis(sweep, "data", {"text:a,b", "text:c\"d"});
  const std::string csv = CellsCsv(CellsOf(sweep, {1, 2}));
  EXPECT_THAT(csv, testing::HasSubstr("\n\"text:a,b\",,1,"));
  EXPECT_THAT(csv, testing::HasSubstr("\n\"text:c\"\"d\",,2,"));
}

}  // namespace
}  // namespace normlab::client
