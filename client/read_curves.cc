#include "client/read_curves.h"

#include <algorithm>
#include <utility>

#include "client/api_error.h"

namespace normlab::client {
namespace {

using normlab::v1::Column;
using normlab::v1::ReadPointsRequest;
using normlab::v1::ReadPointsResponse;
using normlab::v1::ReadSeriesRequest;
using normlab::v1::ReadSeriesResponse;
using normlab::v1::Run;
using normlab::v1::RunService;

exporter::Series SeriesOf(const Column& column) {
  const int count = std::min(column.steps_size(), column.values_size());
  return {column.name(),
          {column.steps().begin(), column.steps().begin() + count},
          {column.values().begin(), column.values().begin() + count}};
}

void Append(exporter::Curve& curve, exporter::Series piece) {
  for (exporter::Series& known : curve.series) {
    if (known.name != piece.name) continue;
    known.steps.insert(known.steps.end(), piece.steps.begin(), piece.steps.end());
    known.values.insert(known.values.end(), piece.values.begin(), piece.values.end());
    return;
  }
  curve.series.push_back(std::move(piece));
}

// Adds the names that an attempt has (0: the default curve). Few points of each come along.
absl::Status AddNames(ApiClient& client, const Run& run, int32_t attempt,
                      std::vector<std::string>& names) {
  ReadSeriesRequest request;
  request.set_run(run.id());
  request.set_attempt(attempt);
  request.set_max_points(5);
  absl::StatusOr<ReadSeriesResponse> answer =
      client.Call(client.runs(), &RunService::Stub::ReadSeries, request);
  if (!answer.ok()) return answer.status();
  for (const auto& column : answer->columns()) {
    const std::string& name = column.column().name();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadAllPoints(ApiClient& client, const ReadPointsRequest& request,
                           const std::function<absl::Status(PointsPiece)>& take) {
  grpc::ClientContext call;  // without a deadline: a long run takes its time
  client.Prepare(call);
  const auto reader = client.runs().ReadPoints(&call, request);
  ReadPointsResponse answer;
  while (reader->Read(&answer)) {
    PointsPiece piece;
    piece.attempt = answer.points().attempt();
    piece.total_steps = answer.total_steps();
    for (const Column& column : answer.points().columns()) {
      piece.series.push_back(SeriesOf(column));
    }
    if (absl::Status status = take(std::move(piece)); !status.ok()) {
      call.TryCancel();
      reader->Finish();
      return status;
    }
  }
  const grpc::Status status = reader->Finish();
  return status.ok() ? absl::OkStatus() : FromGrpc(status);
}

absl::StatusOr<std::vector<std::string>> ReadSeriesNames(ApiClient& client, const Run& run,
                                                         bool all_attempts) {
  std::vector<std::string> names;
  if (absl::Status status = AddNames(client, run, 0, names); !status.ok()) return status;
  if (!all_attempts) return names;
  for (const auto& attempt : run.attempts()) {
    absl::Status status = AddNames(client, run, attempt.number(), names);
    if (!status.ok()) return status;
  }
  return names;
}

absl::StatusOr<exporter::Curve> ReadCurve(ApiClient& client, const Run& run,
                                          const std::vector<std::string>& names) {
  exporter::Curve curve;
  curve.run_id = run.id();
  curve.colour = run.colour();
  curve.name = CurveName(run);
  ReadPointsRequest request;
  request.set_run(run.id());
  for (const std::string& name : names) request.add_names(name);
  const absl::Status status = ReadAllPoints(client, request, [&](PointsPiece piece) {
    for (exporter::Series& series : piece.series) Append(curve, std::move(series));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return curve;
}

absl::StatusOr<std::vector<exporter::Curve>> ReadCurves(ApiClient& client,
                                                        const std::vector<Run>& runs,
                                                        const std::vector<std::string>& names) {
  std::vector<exporter::Curve> curves;
  for (const Run& run : runs) {
    absl::StatusOr<exporter::Curve> curve = ReadCurve(client, run, names);
    if (!curve.ok()) return curve.status();
    curves.push_back(*std::move(curve));
  }
  return curves;
}

std::string CurveName(const Run& run) {
  return run.display_name().empty() ? run.id() : run.display_name();
}

}  // namespace normlab::client
