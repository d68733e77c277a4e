// A run's points read from the server, for exports and plots.
#ifndef NORMLAB_CLIENT_READ_CURVES_H_
#define NORMLAB_CLIENT_READ_CURVES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/api_client.h"
#include "normlab/v1/run.pb.h"
#include "normlab/v1/run_service.pb.h"
#include "server/export/curve.h"

namespace normlab::client {

// A piece of a run's points: whole steps of one attempt.
struct PointsPiece {
  int32_t attempt = 0;
  std::vector<exporter::Series> series;
  int64_t total_steps = 0;  // of all pieces, about; in the first one only
};

// Every point that `request` asks for, as it arrives: some ten thousand at a time are in memory.
// An error of `take` ends the stream and is returned.
absl::Status ReadAllPoints(ApiClient& client, const normlab::v1::ReadPointsRequest& request,
                           const std::function<absl::Status(PointsPiece)>& take);

// Names of a run's series, in the order in which they were declared: of its default curve, or of
// all its attempts.
absl::StatusOr<std::vector<std::string>> ReadSeriesNames(ApiClient& client,
                                                         const normlab::v1::Run& run,
                                                         bool all_attempts);

// Every point of the run's default curve; `names` empty means every series.
absl::StatusOr<exporter::Curve> ReadCurve(ApiClient& client, const normlab::v1::Run& run,
                                          const std::vector<std::string>& names);

absl::StatusOr<std::vector<exporter::Curve>> ReadCurves(ApiClient& client,
                                                        const std::vector<normlab::v1::Run>& runs,
                                                        const std::vector<std::string>& names);

// The run's name, or its id where it has none.
std::string CurveName(const normlab::v1::Run& run);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_READ_CURVES_H_
