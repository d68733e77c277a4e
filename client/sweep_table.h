// Which table a sweep ends in.
#ifndef NORMLAB_CLIENT_SWEEP_TABLE_H_
#define NORMLAB_CLIENT_SWEEP_TABLE_H_

#include <vector>

#include "client/preset_table.h"
#include "normlab/v1/experiment_service.pb.h"

namespace normlab::client {

// Losses at the end: the median over seeds for each combination of what else varies. The first
// setting that varies names the rows and the second the columns, unless a good part of such a grid
// would be empty (draws from ranges): then each combination is a row.
normlab::v1::PresetTable TableOfSweep(const normlab::v1::Sweep& sweep,
                                      const std::vector<normlab::v1::Run>& runs);

// Runs of drawn numbers in the order of the first axis; others stay in theirs.
void OrderDraws(const normlab::v1::Sweep& sweep, std::vector<normlab::v1::Run>& runs);

// Rows from the smallest loss to the largest, those without one last: for tables without columns.
void OrderByLoss(PresetCells& cells);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_SWEEP_TABLE_H_
