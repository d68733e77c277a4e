// Whole curves read from the server, for export and plots.
#ifndef NORMLAB_CLIENT_READ_CURVES_H_
#define NORMLAB_CLIENT_READ_CURVES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/api_client.h"
#include "normlab/v1/run.pb.h"
#include "server/export/curve.h"

namespace normlab::client {

// Every point of the run's default curve; `names` empty means every series. Read in pages of steps,
// so that a long run is no single huge answer.
absl::StatusOr<exporter::Curve> ReadCurve(ApiClient& client, const normlab::v1::Run& run,
                                          const std::vector<std::string>& names);

absl::StatusOr<std::vector<exporter::Curve>> ReadCurves(ApiClient& client,
                                                        const std::vector<normlab::v1::Run>& runs,
                                                        const std::vector<std::string>& names);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_READ_CURVES_H_
