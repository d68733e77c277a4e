// normlab sweep: many runs from few words, in one call.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>

#include "client/commands/commands.h"
#include "client/queue_flags.h"
#include "client/sweep_flags.h"
#include "client/sweep_session.h"
#include "client/term/table.h"
#include "client/term/text.h"

namespace normlab::client {
namespace {

using normlab::v1::CreateExperimentRequest;
using normlab::v1::Experiment;
using normlab::v1::ExperimentService;
using normlab::v1::Run;

constexpr std::chrono::minutes kTimeout(5);  // for ten thousand runs on a busy disk

struct Options {
  SweepFlags sweep;
  QueueFlags queue;
  std::string experiment;
  std::string device;
  std::string out = "normlab-sweep";
  std::string report;  // id of an earlier one: watch and report it instead of a new one
  bool watch = false;
  bool dry_run = false;
};

absl::Status MakeFolder(const std::string& path) {
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  if (!failure) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("cannot make the folder {}: {}", Clean(path), failure.message()));
}

void PrintDryRun(const Experiment& experiment, Terminal& terminal) {
  Table table({{"run", Align::kLeft, /*shrinks=*/true},
               {"steps", Align::kRight},
               {"parameters", Align::kRight}});
  for (const Run& run : experiment.runs()) {
    table.Add({{Clean(run.display_name())},
               {std::to_string(run.effective_spec().steps())},
               {std::to_string(run.summary().parameter_count())}});
  }
  table.PrintTo(terminal);
  terminal.Print(fmt::format("{} runs would be accepted.", experiment.runs_size()));
}

void PrintCreated(const Experiment& experiment, Terminal& terminal) {
  terminal.Print(fmt::format("{}  {}, {} runs", experiment.id(), Clean(experiment.display_name()),
                             experiment.runs_size()));
}

int ReportEarlier(Context& context, ApiClient& client, const Options& options) {
  normlab::v1::GetExperimentRequest request;
  request.set_id(options.report);
  const absl::StatusOr<Experiment> experiment =
      client.Call(client.experiments(), &ExperimentService::Stub::GetExperiment, request, kTimeout);
  if (!experiment.ok()) return context.Fail(experiment.status());
  return WatchSweep(context, *experiment, options.out);
}

int Sweep(Context& context, const Options& options) {
  if (options.sweep.settings().wants_help()) {
    options.sweep.settings().PrintHelp(context.terminal, context.json);
    return kExitOk;
  }
  CreateExperimentRequest request;
  if (options.report.empty()) {
    const absl::StatusOr<normlab::v1::Sweep> sweep = options.sweep.Build();
    if (!sweep.ok()) return context.FailUsage(std::string(sweep.status().message()));
    *request.mutable_experiment()->mutable_sweep() = *sweep;
  }
  request.mutable_experiment()->set_display_name(options.experiment);
  request.set_device(options.device);
  request.set_validate_only(options.dry_run);
  // Before anything is submitted: a folder that cannot be written would waste the runs.
  const bool watch = (options.watch || !options.report.empty()) && !options.dry_run;
  if (watch) {
    if (absl::Status made = MakeFolder(options.out); !made.ok()) return context.Fail(made);
  }
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  if (!options.report.empty()) return ReportEarlier(context, **client, options);
  const absl::Status queue = options.queue.Apply(**client, request);
  if (!queue.ok()) return context.Fail(queue);
  const absl::StatusOr<Experiment> experiment = (*client)->Call(
      (*client)->experiments(), &ExperimentService::Stub::CreateExperiment, request, kTimeout);
  if (!experiment.ok()) return context.Fail(experiment.status());
  if (context.json) {
    context.PrintJson(*experiment);
  } else if (options.dry_run) {
    PrintDryRun(*experiment, context.terminal);
  } else {
    PrintCreated(*experiment, context.terminal);
  }
  return watch ? WatchSweep(context, *experiment, options.out) : kExitOk;
}

}  // namespace

void AddSweep(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("sweep", "Submit many runs at once: a grid, draws, or a list");
  options->sweep.AddTo(*command);
  options->queue.AddTo(*command);
  command->add_option("--experiment", options->experiment, "Name of the experiment")
      ->type_name("NAME");
  command->add_option("--device", options->device, "auto, cpu, gpu, or a device such as cpu:0")
      ->type_name("DEVICE");
  command->add_flag("--dry-run", options->dry_run,
                    "Check everything, show the runs, submit nothing");
  command->add_flag("--watch", options->watch, "Watch to the end, then print and write the table");
  command->add_option("--report", options->report, "Watch and report an earlier sweep")
      ->type_name("ID");
  command
      ->add_option("-o,--out", options->out, "Folder for sweep.csv, sweep-table.csv and sweep.svg")
      ->type_name("DIR")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  normlab sweep --grid layers=2,6,12 --grid learning_rate=5e-4:8e-3:log5 --seeds 3 --watch\n"
      "  normlab sweep --grid placement=pre,post --grid seed=0:4 --steps 60 --dry-run\n"
      "  normlab sweep --random learning_rate=1e-4:1e-2:log --samples 20 --sample-seed 1\n"
      "  normlab sweep --random dropout=0:0.3 --samples 8 --grid placement=pre,post\n"
      "  normlab sweep --list runs.jsonl --layers 6\n"
      "  normlab sweep --grid seed=1:40 --stop-above-quantile 0.5 --stop-at 40,80\n"
      "\nAll runs are created or none is. Any setting is a flag for all of them (--layers 6); "
      "runs\n"
      "are named by what differs. With --watch the median over seeds is printed by the first two\n"
      "settings that vary. Ctrl-C stops the watching, not the runs; runs that diverge or are\n"
      "stopped early count in the table alone.");
  command->callback([&context, options] { context.exit_code = Sweep(context, *options); });
}

}  // namespace normlab::client
