// Whether a run of a sweep does so badly at a step that it is not worth its device.
#ifndef NORMLAB_SERVER_DOMAIN_EARLY_STOP_H_
#define NORMLAB_SERVER_DOMAIN_EARLY_STOP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "normlab/v1/experiment_service.pb.h"
#include "normlab/v1/run.pb.h"

namespace normlab::domain {

// The q-quantile of values that are not NaN, by linear interpolation between the two nearest in
// order (type 7 of Hyndman and Fan, as NumPy does). Infinite where one of those two is. `values` is
// not empty, q lies between 0 and 1.
double Quantile(std::vector<double> values, double q);

// Peers that there must be for a comparison.
int32_t MinimumPeers(const v1::EarlyStop& rule);

// Why the run is to be stopped at `step`; empty: it goes on. A loss that is no finite number is
// worse than all finite ones. `peers`: their losses at that step, infinite for those that diverged.
std::string WhyStopEarly(const v1::EarlyStop& rule, int64_t step, double loss,
                         std::vector<double> peers);

// A run that has ended was stopped for such a reason.
bool WasStoppedEarly(const v1::Run& run);

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_EARLY_STOP_H_
