// What is left of a preset's experiment when its runs have ended: a table beside the published
// figures, a CSV file, a picture.
#ifndef NORMLAB_CLIENT_PRESET_REPORT_H_
#define NORMLAB_CLIENT_PRESET_REPORT_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/api_client.h"
#include "client/context.h"
#include "normlab/v1/experiment_service.pb.h"
#include "server/export/curve.h"

namespace normlab::client {

struct PresetReport {
  normlab::v1::Preset preset;
  std::vector<normlab::v1::Run> runs;   // ended, in the preset's order
  std::vector<exporter::Curve> curves;  // of the runs
  std::string changed_settings;         // "layers 6, steps 30"; empty: the preset's own
};

absl::StatusOr<normlab::v1::Preset> FindPreset(ApiClient& client, const std::string& name);

// "layers 6, steps 30": what the runs have instead of the preset's own settings.
std::string ChangedSettings(const normlab::v1::Preset& preset,
                            const std::vector<normlab::v1::Run>& runs);

// The table and the bands below it.
void PrintReport(const PresetReport& report, Terminal& terminal);

// {"event":"report","rows":[{"run":…,"finalLoss":…,"publishedFinalLoss":…}],"csv":…,"svg":…}
std::string ReportJson(const PresetReport& report, const std::filesystem::path& csv,
                       const std::filesystem::path& svg);

// The curves: run,step,loss,gradient_norm,learning_rate, and unless `main_series_only` every other
// series that was read. Gives the number of rows.
absl::StatusOr<int64_t> WriteReportCsv(const PresetReport& report, bool main_series_only,
                                       const std::filesystem::path& path);
absl::Status WriteReportSvg(const PresetReport& report, const std::filesystem::path& path);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_PRESET_REPORT_H_
