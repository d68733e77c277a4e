#include "client/sweep_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/output_file.h"
#include "client/preset_picture.h"
#include "client/preset_report.h"
#include "client/preset_table.h"
#include "client/preset_table_report.h"
#include "client/read_curves.h"
#include "client/result_grid.h"
#include "client/sweep_table.h"
#include "client/term/text.h"
#include "client/watch_session.h"
#include "server/domain/early_stop.h"

namespace normlab::client {
namespace {

using domain::WasStoppedEarly;
using normlab::v1::Experiment;
using normlab::v1::Run;

struct Files {
  std::filesystem::path curves, table, picture;
};

Files FilesIn(const std::string& out) {
  const std::filesystem::path folder = out;
  return {folder / "sweep.csv", folder / "sweep-table.csv", folder / "sweep.svg"};
}

int ExitCodeOf(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (ExitCodeOfState(run.state()) == kExitRunFailed && !WasStoppedEarly(run)) {
      return kExitRunFailed;
    }
  }
  return kExitOk;
}

absl::StatusOr<PresetReport> ReadReport(ApiClient& client, const Experiment& experiment,
                                        std::vector<Run> runs) {
  OrderDraws(experiment.sweep(), runs);
  PresetReport report;
  report.preset.set_title(experiment.display_name());
  *report.preset.mutable_table() = TableOfSweep(experiment.sweep(), runs);
  absl::StatusOr<std::vector<exporter::Curve>> curves =
      ReadCurves(client, runs, {"loss", "gradient_norm", "learning_rate"});
  if (!curves.ok()) return curves.status();
  report.runs = std::move(runs);
  report.curves = *std::move(curves);
  return report;
}

std::string EndsText(const std::vector<Run>& runs) {
  const auto stopped = std::ranges::count_if(runs, WasStoppedEarly);
  const auto diverged = std::ranges::count(runs, Run::STATE_DIVERGED, &Run::state);
  std::string text = fmt::format("{} runs", runs.size());
  if (stopped > 0) text += fmt::format(", {} stopped early", stopped);
  if (diverged > 0) text += fmt::format(", {} diverged", diverged);
  return text;
}

void PrintReport(const PresetCells& cells, const PresetReport& report, const Files& files,
                 Terminal& terminal) {
  terminal.Print("");
  if (IsGrid(cells)) {
    PrintGrids(cells, terminal);
  } else {
    PrintCells(cells, terminal);
  }
  terminal.Print("");
  terminal.Print(EndsText(report.runs));
  terminal.Print(fmt::format("Wrote {}, {} and {}", Clean(files.curves.string()),
                             Clean(files.table.string()), Clean(files.picture.string())));
}

std::string ReportJson(const PresetCells& cells, const PresetReport& report,
                       const Experiment& experiment, const Files& files) {
  const nlohmann::ordered_json json = {
      {"event", "report"},
      {"experiment", experiment.id()},
      {"quantity", cells.value_title},
      {"cells", CellsJson(cells)},
      {"stoppedEarly", std::ranges::count_if(report.runs, WasStoppedEarly)},
      {"diverged", std::ranges::count(report.runs, Run::STATE_DIVERGED, &Run::state)},
      {"csv", files.curves.string()},
      {"table", files.table.string()},
      {"svg", files.picture.string()}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

absl::Status Report(Context& context, const PresetReport& report, const Experiment& experiment,
                    const std::string& out) {
  PresetCells cells = Tabulate(report.preset, report.runs, report.curves, /*judge=*/false);
  if (!IsGrid(cells)) OrderByLoss(cells);
  const Files files = FilesIn(out);
  const auto rows = WriteReportCsv(report, /*main_series_only=*/true, files.curves);
  if (!rows.ok()) return rows.status();
  absl::Status status = WriteFile(files.table, CellsCsv(cells));
  if (!status.ok()) return status;
  status = WriteFile(files.picture, PresetPicture(report.preset, report.runs, report.curves, cells,
                                                  "normlab sweep " + experiment.id()));
  if (!status.ok()) return status;
  if (context.json) {
    context.terminal.Print(ReportJson(cells, report, experiment, files));
  } else {
    PrintReport(cells, report, files, context.terminal);
  }
  return absl::OkStatus();
}

}  // namespace

int WatchSweep(Context& context, const Experiment& experiment, const std::string& out) {
  WatchTask task;
  task.title = experiment.display_name();
  task.request.set_experiment(experiment.id());
  task.runs.assign(experiment.runs().begin(), experiment.runs().end());
  task.again = fmt::format("normlab sweep --report {} --out {}", experiment.id(), Clean(out));
  const absl::StatusOr<WatchOutcome> outcome = Watch(context, task);
  if (!outcome.ok()) return context.Fail(outcome.status());
  if (outcome->interrupted) return outcome->exit_code();
  std::vector<Run> runs;
  for (const WatchedRun& watched : outcome->runs) runs.push_back(watched.run);
  const int exit_code = ExitCodeOf(runs);
  // A new connection: the server may have been restarted while we watched.
  const auto reader = context.Connect();
  if (!reader.ok()) return context.Fail(reader.status());
  const auto report = ReadReport(**reader, experiment, std::move(runs));
  if (!report.ok()) return context.Fail(report.status());
  const absl::Status reported = Report(context, *report, experiment, out);
  return reported.ok() ? exit_code : context.Fail(reported);
}

}  // namespace normlab::client
