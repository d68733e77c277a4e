#include "client/read_curves.h"

#include <algorithm>

#include "normlab/v1/run_service.pb.h"

namespace normlab::client {
namespace {

using normlab::v1::Column;
using normlab::v1::ReadSeriesRequest;
using normlab::v1::ReadSeriesResponse;
using normlab::v1::Run;
using normlab::v1::RunService;

constexpr int64_t kPageSteps = 200'000;

void Append(exporter::Curve& curve, const Column& column) {
  exporter::Series* series = nullptr;
  for (exporter::Series& known : curve.series) {
    if (known.name == column.name()) series = &known;
  }
  if (series == nullptr) {
    curve.series.push_back({column.name(), {}, {}});
    series = &curve.series.back();
  }
  const int count = std::min(column.steps_size(), column.values_size());
  series->steps.insert(series->steps.end(), column.steps().begin(), column.steps().begin() + count);
  series->values.insert(series->values.end(), column.values().begin(),
                        column.values().begin() + count);
}

}  // namespace

absl::StatusOr<exporter::Curve> ReadCurve(ApiClient& client, const Run& run,
                                          const std::vector<std::string>& names) {
  exporter::Curve curve;
  curve.run_id = run.id();
  curve.colour = run.colour();
  curve.name = run.display_name().empty() ? run.id() : run.display_name();
  const int64_t last_step = run.progress().step();
  for (int64_t first = 1; first == 1 || first <= last_step; first += kPageSteps) {
    ReadSeriesRequest request;
    request.set_run(run.id());
    for (const std::string& name : names) request.add_names(name);
    request.set_from_step(first == 1 ? 0 : first);
    // The last page has no end: the run may have gone on since.
    const int64_t end = first + kPageSteps - 1;
    if (end < last_step) request.set_to_step(end);
    absl::StatusOr<ReadSeriesResponse> page = client.Call(
        client.runs(), &RunService::Stub::ReadSeries, request, std::chrono::milliseconds(60'000));
    if (!page.ok()) return page.status();
    for (const auto& column : page->columns()) Append(curve, column.column());
  }
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

}  // namespace normlab::client
