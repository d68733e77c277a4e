// The table of a preset: its runs grouped into rows (over their seeds) and columns, a quantity in
// each cell, and whether it lies where the preset says it should. Pure functions of runs and
// curves.
#ifndef NORMLAB_CLIENT_PRESET_TABLE_H_
#define NORMLAB_CLIENT_PRESET_TABLE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "normlab/v1/experiment_service.pb.h"
#include "normlab/v1/run.pb.h"
#include "server/export/curve.h"

namespace normlab::client {

struct TableCell {
  // A value of the column setting, the number of a block, "slope" or "minus first"; empty where the
  // table has no columns.
  std::string column;
  std::vector<double> values;  // one a run; infinite for a loss that diverged
  double value = 0;            // over the seeds; NaN when no run has one
  std::optional<normlab::v1::PresetExpectation> expected;

  bool HasBand() const { return expected && (expected->has_minimum() || expected->has_maximum()); }
  // Whether the value lies in the band; true without one.
  bool Holds() const;
};

struct TableRow {
  std::vector<std::string> labels;  // values of the preset's row settings
  std::string colour;
  std::vector<size_t> runs;  // indices
  std::vector<TableCell> cells;

  const TableCell* Find(const std::string& column) const;
};

struct PresetCells {
  std::vector<std::string> label_titles;
  std::string column_title;  // "layers", "block"; empty without columns
  std::string value_title;   // "final loss"
  bool is_loss = false;      // cells are losses at the end
  std::vector<TableRow> rows;

  int BandCount() const;
  int BrokenBandCount() const;
};

// `curves` belong to `runs`, one by one. Expectations are left out unless `judge`: they are for the
// preset's own settings.
PresetCells Tabulate(const normlab::v1::Preset& preset, const std::vector<normlab::v1::Run>& runs,
                     const std::vector<exporter::Curve>& curves, bool judge);

// Series of the run that the preset's table and picture are made of.
std::vector<std::string> SeriesOfPreset(const normlab::v1::Preset& preset,
                                        const normlab::v1::Run& run);

// "block/3/stream_rms"; blocks count from 1.
std::string BlockSeries(int64_t block, const std::string& name);

// The gauge of the way back through the blocks of one run: means over blocks.
struct IdentityPath {
  double gain = 0;      // |J^T v| / |v| over random v
  double largest = 0;   // singular value, the largest of any block
  double distance = 0;  // |(J - I)^T v| / |v|
};
// Nothing when the run was not probed.
std::optional<IdentityPath> IdentityPathOf(const normlab::v1::Run& run,
                                           const exporter::Curve& curve);

// The first value of a series; NaN when it has none.
double FirstValue(const exporter::Curve& curve, const std::string& series);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_PRESET_TABLE_H_
