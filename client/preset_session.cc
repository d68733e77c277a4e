#include "client/preset_session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "client/output_file.h"
#include "client/preset_picture.h"
#include "client/preset_report.h"
#include "client/preset_table.h"
#include "client/preset_table_report.h"
#include "client/read_curves.h"
#include "client/result_grid.h"
#include "client/term/text.h"
#include "client/watch_session.h"
#include "server/domain/settings.h"

namespace normlab::client {
namespace {

using normlab::v1::CreateExperimentRequest;
using normlab::v1::Experiment;
using normlab::v1::ExperimentService;
using normlab::v1::Preset;
using normlab::v1::PresetRun;
using normlab::v1::Run;
using normlab::v1::RunSpec;

// "layers=1,2": the setting and the values of it that are wanted.
struct Choice {
  std::string setting;
  std::set<std::string> values;
};

absl::StatusOr<Choice> ParseChoice(const std::string& text) {
  const size_t equals = text.find('=');
  const domain::SettingInfo* setting = domain::FindSetting(text.substr(0, equals));
  if (equals == std::string::npos || setting == nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("--only needs SETTING=VALUE,VALUE, not \"{}\"", Clean(text)));
  }
  Choice choice = {setting->name, {}};
  for (size_t begin = equals + 1; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    // As the setting itself would be written: 1e-3 for 0.001.
    RunSpec spec;
    absl::Status status = domain::SetFromText(spec, setting->name, text.substr(begin, end - begin));
    if (!status.ok()) return status;
    choice.values.insert(domain::ValueText(spec, setting->name));
    begin = end + 1;
  }
  return choice;
}

// Names of the preset's runs that `only` leaves; empty when it leaves all.
absl::StatusOr<std::vector<std::string>> ChosenRuns(const Preset& preset,
                                                    const std::vector<std::string>& only) {
  std::vector<const PresetRun*> left;
  for (const PresetRun& run : preset.runs()) left.push_back(&run);
  for (const std::string& text : only) {
    const absl::StatusOr<Choice> choice = ParseChoice(text);
    if (!choice.ok()) return choice.status();
    std::set<std::string> known;
    std::erase_if(left, [&](const PresetRun* run) {
      const std::string value = domain::ValueText(run->spec(), choice->setting);
      known.insert(value);
      return !choice->values.contains(value);
    });
    if (left.empty()) {
      return absl::InvalidArgumentError(fmt::format("--only {} leaves no run; there is {} {}",
                                                    Clean(text), choice->setting,
                                                    fmt::join(known, ", ")));
    }
  }
  std::vector<std::string> names;
  if (only.empty()) return names;
  for (const PresetRun* run : left) names.push_back(run->display_name());
  return names;
}

absl::StatusOr<Experiment> FindExperiment(ApiClient& client, const PresetOptions& options) {
  normlab::v1::GetExperimentRequest request;
  request.set_id(options.experiment);
  absl::StatusOr<Experiment> experiment =
      client.Call(client.experiments(), &ExperimentService::Stub::GetExperiment, request);
  if (experiment.ok() && !experiment->preset().empty() && experiment->preset() != options.preset) {
    return absl::NotFoundError(fmt::format("experiment {} is of preset {}, not {}",
                                           Clean(options.experiment), Clean(experiment->preset()),
                                           options.preset));
  }
  return experiment;
}

absl::StatusOr<Experiment> MakeExperiment(ApiClient& client, const PresetOptions& options,
                                          const RunSpec& overrides,
                                          const std::vector<std::string>& chosen) {
  if (!options.experiment.empty()) return FindExperiment(client, options);
  CreateExperimentRequest request;
  request.mutable_experiment()->set_preset(options.preset);
  request.mutable_experiment()->set_display_name(options.name);
  for (const std::string& name : chosen) {
    request.mutable_experiment()->add_runs()->set_display_name(name);
  }
  *request.mutable_overrides() = overrides;
  request.set_device(options.device);
  if (absl::Status queue = options.queue.Apply(client, request); !queue.ok()) return queue;
  return client.Call(client.experiments(), &ExperimentService::Stub::CreateExperiment, request);
}

absl::StatusOr<WatchOutcome> WatchExperiment(Context& context, const Experiment& experiment,
                                             const Preset& preset, const PresetOptions& options) {
  WatchTask task;
  task.title = experiment.display_name().empty() ? preset.title() : experiment.display_name();
  task.request.set_experiment(experiment.id());
  task.runs.assign(experiment.runs().begin(), experiment.runs().end());
  // The same command goes on where this one stopped, to the table and the files.
  task.again = fmt::format("normlab {} --experiment {} --out {}", options.command, experiment.id(),
                           Clean(options.out));
  return Watch(context, task);
}

std::filesystem::path FileOf(const PresetOptions& options, const char* ending) {
  return std::filesystem::path(options.out) / (options.preset + ending);
}

// Table of single runs beside published figures: the article's.
absl::Status ReportRuns(Context& context, ApiClient& client, PresetReport report,
                        const PresetOptions& options) {
  absl::StatusOr<std::vector<exporter::Curve>> curves =
      ReadCurves(client, report.runs, {"loss", "gradient_norm", "learning_rate"});
  if (!curves.ok()) return curves.status();
  report.curves = *std::move(curves);
  const std::filesystem::path csv = FileOf(options, ".csv");
  const std::filesystem::path svg = FileOf(options, ".svg");
  const absl::StatusOr<int64_t> rows = WriteReportCsv(report, /*main_series_only=*/true, csv);
  if (!rows.ok()) return rows.status();
  if (absl::Status status = WriteReportSvg(report, svg); !status.ok()) return status;
  if (context.json) {
    context.terminal.Print(ReportJson(report, csv, svg));
    return absl::OkStatus();
  }
  PrintReport(report, context.terminal);
  context.terminal.Print(
      fmt::format("Wrote {} ({} rows) and {}", Clean(csv.string()), *rows, Clean(svg.string())));
  return absl::OkStatus();
}

void PrintIdentityPaths(const PresetReport& report, const PresetCells& cells, Terminal& terminal) {
  bool first = true;
  for (const TableRow& row : cells.rows) {
    const size_t run = *std::ranges::max_element(
        row.runs, {}, [&report](size_t i) { return report.runs[i].effective_spec().layers(); });
    const auto path = IdentityPathOf(report.runs[run], report.curves[run]);
    if (!path) continue;
    if (std::exchange(first, false)) {
      terminal.Print("\nThe way back through a block at the start: J = dx'/dx, mean over blocks.");
    }
    terminal.Print(fmt::format(
        "  {}: gain {:.3g}, distance from the identity {:.3g}, largest singular value {:.3g}",
        Clean(report.runs[run].display_name()), path->gain, path->distance, path->largest));
  }
}

void PrintTableReport(const PresetReport& report, const PresetCells& cells, Terminal& terminal) {
  terminal.Print("");
  if (IsGrid(cells)) {
    PrintGrids(cells, terminal);
  } else {
    PrintCells(cells, terminal);
  }
  PrintIdentityPaths(report, cells, terminal);
  terminal.Print("");
  const int width = terminal.smart() ? terminal.size().columns : 0;
  std::string verdict;
  if (!report.changed_settings.empty()) {
    verdict = fmt::format("What is expected is for the preset's own settings; these runs have {}.",
                          report.changed_settings);
  } else if (cells.BrokenBandCount() == 0) {
    verdict = fmt::format("{} of {} expectations hold.", cells.BandCount(), cells.BandCount());
  } else {
    verdict = fmt::format("{} of {} expectations do not hold.", cells.BrokenBandCount(),
                          cells.BandCount());
  }
  for (const std::string& line : Wrap(verdict, width)) terminal.Print(line);
  if (report.preset.source().empty()) return;
  for (const std::string& line : Wrap("Expected: " + Clean(report.preset.source()), width)) {
    terminal.Print(terminal.style().Dim(line));
  }
}

std::string TableReportJson(const PresetReport& report, const PresetCells& cells,
                            const PresetOptions& options) {
  nlohmann::ordered_json json = {{"event", "report"},
                                 {"preset", report.preset.name()},
                                 {"changedSettings", report.changed_settings},
                                 {"quantity", cells.value_title},
                                 {"cells", CellsJson(cells)},
                                 {"expectations", cells.BandCount()},
                                 {"broken", cells.BrokenBandCount()}};
  nlohmann::ordered_json paths = nlohmann::ordered_json::array();
  for (size_t i = 0; i < report.runs.size(); ++i) {
    const auto path = IdentityPathOf(report.runs[i], report.curves[i]);
    if (!path) continue;
    paths.push_back({{"run", report.runs[i].display_name()},
                     {"gain", path->gain},
                     {"distance", path->distance},
                     {"largest", path->largest}});
  }
  if (!paths.empty()) json["identityPath"] = paths;
  json["csv"] = FileOf(options, ".csv").string();
  json["table"] = FileOf(options, "-table.csv").string();
  json["svg"] = FileOf(options, ".svg").string();
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// Table of groups of runs beside expectations. `exit_code` becomes kExitExpectation when one of
// them does not hold.
absl::Status ReportTable(Context& context, ApiClient& client, PresetReport report,
                         const PresetOptions& options, int& exit_code) {
  for (const Run& run : report.runs) {
    absl::StatusOr<exporter::Curve> curve =
        ReadCurve(client, run, SeriesOfPreset(report.preset, run));
    if (!curve.ok()) return curve.status();
    report.curves.push_back(*std::move(curve));
  }
  const PresetCells cells = Tabulate(report.preset, report.runs, report.curves,
                                     /*judge=*/report.changed_settings.empty());
  const absl::StatusOr<int64_t> rows =
      WriteReportCsv(report, /*main_series_only=*/false, FileOf(options, ".csv"));
  if (!rows.ok()) return rows.status();
  absl::Status status = WriteFile(FileOf(options, "-table.csv"), CellsCsv(cells));
  if (!status.ok()) return status;
  const std::string footnote =
      "normlab " + options.command +
      (report.changed_settings.empty() ? "" : " with " + report.changed_settings);
  status = WriteFile(FileOf(options, ".svg"),
                     PresetPicture(report.preset, report.runs, report.curves, cells, footnote));
  if (!status.ok()) return status;
  if (context.json) {
    context.terminal.Print(TableReportJson(report, cells, options));
  } else {
    PrintTableReport(report, cells, context.terminal);
    context.terminal.Print(fmt::format(
        "Wrote {} ({} rows), {} and {}", Clean(FileOf(options, ".csv").string()), *rows,
        Clean(FileOf(options, "-table.csv").string()), Clean(FileOf(options, ".svg").string())));
  }
  // A run that diverged is a result that the table counts, not a fault of its own.
  if (exit_code == kExitDiverged) exit_code = kExitOk;
  if (exit_code == kExitOk && cells.BrokenBandCount() > 0) exit_code = kExitExpectation;
  return absl::OkStatus();
}

int WatchAndReport(Context& context, const Experiment& experiment, const Preset& preset,
                   const PresetOptions& options) {
  const absl::StatusOr<WatchOutcome> outcome =
      WatchExperiment(context, experiment, preset, options);
  if (!outcome.ok()) return context.Fail(outcome.status());
  if (outcome->interrupted) return outcome->exit_code();
  PresetReport report;
  report.preset = preset;
  for (const WatchedRun& watched : outcome->runs) report.runs.push_back(watched.run);
  report.changed_settings = ChangedSettings(preset, report.runs);
  // A new connection: the server may have been restarted while we watched.
  const auto reader = context.Connect();
  if (!reader.ok()) return context.Fail(reader.status());
  int exit_code = outcome->exit_code();
  const absl::Status reported =
      preset.has_table() ? ReportTable(context, **reader, std::move(report), options, exit_code)
                         : ReportRuns(context, **reader, std::move(report), options);
  return reported.ok() ? exit_code : context.Fail(reported);
}

}  // namespace

void AddPresetOptions(CLI::App& command, PresetOptions& options, const std::string& files) {
  options.settings.AddTo(command);
  CLI::Option* out =
      command.add_option("--out", options.out, "Folder for " + files)->type_name("DIR");
  if (!options.out.empty()) out->capture_default_str();
  options.queue.AddTo(command);
  command.add_option("--name", options.name, "Name of the experiment");
  command.add_option("--device", options.device, "auto, cpu, gpu, or a device such as cpu:0")
      ->type_name("DEVICE");
  command
      .add_option("--experiment", options.experiment,
                  "Watch and report an earlier one instead of starting anew")
      ->type_name("ID");
}

int RunPreset(Context& context, const PresetOptions& options) {
  if (options.settings.wants_help()) {
    options.settings.PrintHelp(context.terminal, context.json);
    return kExitOk;
  }
  RunSpec overrides;
  if (absl::Status status = options.settings.Apply(overrides); !status.ok()) {
    return context.FailUsage(std::string(status.message()));
  }
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  const absl::StatusOr<Preset> preset = FindPreset(**client, options.preset);
  if (!preset.ok()) return context.Fail(preset.status());
  const absl::StatusOr<std::vector<std::string>> chosen = ChosenRuns(*preset, options.only);
  if (!chosen.ok()) return context.FailUsage(std::string(chosen.status().message()));
  // Before anything is submitted: a folder that cannot be written would waste the runs.
  std::error_code failure;
  std::filesystem::create_directories(options.out, failure);
  if (failure) {
    return context.Fail(absl::FailedPreconditionError(
        fmt::format("cannot make the folder {}: {}", options.out, failure.message())));
  }
  const absl::StatusOr<Experiment> experiment =
      MakeExperiment(**client, options, overrides, *chosen);
  if (!experiment.ok()) return context.Fail(experiment.status());
  return WatchAndReport(context, *experiment, *preset, options);
}

}  // namespace normlab::client
