// From a sweep to its runs: every combination of the axes (a grid), draws from them, settings given
// one by one (a list), or a list with each of these.
//
//   absl::StatusOr<std::vector<SweepRun>> runs = ExpandSweep(sweep);
//   // "layers=2 learning_rate=0.0005", "layers=2 learning_rate=0.001", ...
//
// Pure functions, any thread.
#ifndef NORMLAB_SERVER_DOMAIN_SWEEP_H_
#define NORMLAB_SERVER_DOMAIN_SWEEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "normlab/v1/experiment_service.pb.h"

namespace normlab::domain {

// Runs of one experiment.
inline constexpr int64_t kLargestExperiment = 10'000;

struct SweepRun {
  std::string name;  // what differs from the others: "layers=6 placement=pre"; none has another's
  v1::RunSpec spec;  // as given: the base and what differs
};

// The runs in order: the entries of the list one after the other, for each the combinations with
// the last axis fastest, or the draws, which are the same for every entry.
//
// INVALID_ARGUMENT names each place that is wrong ("sweep.axes[1].values[2]"): a setting that is
// unknown, the server's own, or an axis twice; a value out of its range; a range without sense; two
// runs that would train the same; no run at all, or too many. What only the whole of a run shows
// (heads that do not divide d_model) is left to CheckSpec.
//
// Numbers of a range are rounded to six significant digits, more where neighbours are nearer than
// that, and lie within the range. On an integer setting they are whole: those of a grid are rounded
// to the nearest; a draw takes every integer of the range equally often, or, logarithmically, k as
// often as the logarithm grows from k - 1/2 to k + 1/2.
//
// Draws come from std::mt19937_64 seeded with `sample_seed`: a sample takes from each axis, in
// order, one number u = (x >> 11) / 2^53 in [0, 1) of the generator's next output x; that is
// values[floor(u n)] or minimum + u (maximum - minimum), of logarithms if so wanted. A sample that
// would train what an earlier one trains is drawn again.
absl::StatusOr<std::vector<SweepRun>> ExpandSweep(const v1::Sweep& sweep);

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_SWEEP_H_
