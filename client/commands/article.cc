// normlab article: the built-in experiment, from submit to table, CSV and picture.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "client/commands/commands.h"
#include "client/preset_report.h"
#include "client/read_curves.h"
#include "client/settings_flags.h"
#include "client/term/text.h"
#include "client/watch_session.h"

namespace normlab::client {
namespace {

using normlab::v1::CreateExperimentRequest;
using normlab::v1::Experiment;
using normlab::v1::ExperimentService;
using normlab::v1::Preset;
using normlab::v1::Run;
using normlab::v1::RunSpec;

constexpr const char* kPreset = "article";

struct Options {
  SettingsFlags settings;
  std::string out = "normlab-article";
  std::string name;
  std::string device;
  std::string experiment;  // an earlier one: watch and report it instead of a new one
};

absl::StatusOr<Experiment> MakeExperiment(ApiClient& client, const Options& options,
                                          const RunSpec& overrides) {
  if (!options.experiment.empty()) {
    normlab::v1::GetExperimentRequest request;
    request.set_id(options.experiment);
    return client.Call(client.experiments(), &ExperimentService::Stub::GetExperiment, request);
  }
  CreateExperimentRequest request;
  request.mutable_experiment()->set_preset(kPreset);
  request.mutable_experiment()->set_display_name(options.name);
  *request.mutable_overrides() = overrides;
  request.set_device(options.device);
  return client.Call(client.experiments(), &ExperimentService::Stub::CreateExperiment, request);
}

absl::StatusOr<WatchOutcome> WatchExperiment(Context& context, const Experiment& experiment,
                                             const Preset& preset, const Options& options) {
  WatchTask task;
  task.title = experiment.display_name().empty() ? preset.title() : experiment.display_name();
  task.request.set_experiment(experiment.id());
  task.runs.assign(experiment.runs().begin(), experiment.runs().end());
  // The same command goes on where this one stopped, to the table and the files.
  task.again =
      fmt::format("normlab article --experiment {} --out {}", experiment.id(), Clean(options.out));
  return Watch(context, task);
}

// Reads the curves of the ended runs and writes table, CSV and picture.
absl::Status Report(Context& context, ApiClient& client, PresetReport report,
                    const std::filesystem::path& out) {
  absl::StatusOr<std::vector<exporter::Curve>> curves =
      ReadCurves(client, report.runs, {"loss", "gradient_norm", "learning_rate"});
  if (!curves.ok()) return curves.status();
  report.curves = *std::move(curves);
  const std::filesystem::path csv = out / "article.csv";
  const std::filesystem::path svg = out / "article.svg";
  const absl::StatusOr<int64_t> rows = WriteReportCsv(report, csv);
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

int Article(Context& context, const Options& options) {
  if (options.settings.wants_help()) {
    options.settings.PrintHelp(context.terminal, context.json);
    return kExitOk;
  }
  RunSpec overrides;
  if (absl::Status status = options.settings.Apply(overrides); !status.ok()) {
    return context.FailUsage(std::string(status.message()));
  }
  // Before anything is submitted: a folder that cannot be written would waste the runs.
  std::error_code failure;
  std::filesystem::create_directories(options.out, failure);
  if (failure) {
    return context.Fail(absl::FailedPreconditionError(
        fmt::format("cannot make the folder {}: {}", options.out, failure.message())));
  }
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  const absl::StatusOr<Preset> preset = FindPreset(**client, kPreset);
  if (!preset.ok()) return context.Fail(preset.status());
  const absl::StatusOr<Experiment> experiment = MakeExperiment(**client, options, overrides);
  if (!experiment.ok()) return context.Fail(experiment.status());

  const absl::StatusOr<WatchOutcome> outcome =
      WatchExperiment(context, *experiment, *preset, options);
  if (!outcome.ok()) return context.Fail(outcome.status());
  if (outcome->interrupted) return outcome->exit_code();
  PresetReport report;
  report.preset = *preset;
  for (const WatchedRun& watched : outcome->runs) report.runs.push_back(watched.run);
  report.changed_settings = ChangedSettings(*preset, report.runs);
  // A new connection: the server may have been restarted while we watched.
  const auto reader = context.Connect();
  if (!reader.ok()) return context.Fail(reader.status());
  const absl::Status reported = Report(context, **reader, std::move(report), options.out);
  return reported.ok() ? outcome->exit_code() : context.Fail(reported);
}

}  // namespace

void AddArticle(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand(
      "article", "Run the article's experiment: Pre-Norm, Post-Norm, Post-Norm with warmup");
  options->settings.AddTo(*command);
  command->add_option("--out", options->out, "Folder for article.csv and article.svg")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_option("--name", options->name, "Name of the experiment");
  command->add_option("--device", options->device, "auto, cpu, gpu, or a device such as cpu:0")
      ->type_name("DEVICE");
  command
      ->add_option("--experiment", options->experiment,
                   "Watch and report an earlier one instead of starting anew")
      ->type_name("ID");
  command->footer(
      "Examples:\n  normlab article\n"
      "  normlab article --layers 6 --steps 30 --out smoke    the same, small\n"
      "  normlab article --seed 8 --json\n"
      "\nShows the curves while the runs train, prints final loss and largest gradient norm\n"
      "beside the published figures, and writes article.csv and article.svg. Ctrl-C stops the\n"
      "watching, not the runs.");
  command->callback([&context, options] { context.exit_code = Article(context, *options); });
}

}  // namespace normlab::client
