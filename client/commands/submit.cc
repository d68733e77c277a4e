// normlab submit: one run with any settings.
#include <fmt/format.h>

#include <memory>

#include "client/commands/commands.h"
#include "client/queue_flags.h"
#include "client/run_facts.h"
#include "client/settings_flags.h"
#include "client/term/text.h"
#include "client/watch_session.h"

namespace normlab::client {
namespace {

using normlab::v1::CreateRunRequest;
using normlab::v1::Run;
using normlab::v1::RunService;

struct Options {
  SettingsFlags settings;
  QueueFlags queue;
  std::string name;
  std::string experiment;
  std::string device;
  bool watch = false;
  bool dry_run = false;
};

int WatchRun(Context& context, const Run& run) {
  const absl::StatusOr<WatchOutcome> outcome = Watch(context, TaskOfRuns({run}));
  return outcome.ok() ? outcome->exit_code() : context.Fail(outcome.status());
}

void PrintDryRun(const Run& run, Terminal& terminal) {
  terminal.Print("The run would be accepted.");
  PrintFact(terminal, "name", Clean(run.display_name()));
  PrintFact(terminal, "device", Clean(run.device()));
  PrintFact(terminal, "settings", GivenSettings(run));
  PrintFact(terminal, "resolved", ResolvedSettings(run));
  PrintModelSize(run.summary(), terminal);
}

int Submit(Context& context, const Options& options) {
  if (options.settings.wants_help()) {
    options.settings.PrintHelp(context.terminal, context.json);
    return kExitOk;
  }
  CreateRunRequest request;
  request.set_validate_only(options.dry_run);
  request.mutable_run()->set_display_name(options.name);
  request.mutable_run()->set_experiment(options.experiment);
  request.mutable_run()->set_device(options.device);
  const absl::Status settings = options.settings.Apply(*request.mutable_run()->mutable_spec());
  if (!settings.ok()) return context.FailUsage(std::string(settings.message()));

  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  const absl::Status queue = options.queue.Apply(**client, *request.mutable_run());
  if (!queue.ok()) return context.Fail(queue);
  const absl::StatusOr<Run> run =
      (*client)->Call((*client)->runs(), &RunService::Stub::CreateRun, request);
  if (!run.ok()) return context.Fail(run.status());
  if (context.json) {
    context.PrintJson(*run);
  } else if (options.dry_run) {
    PrintDryRun(*run, context.terminal);
  } else {
    context.terminal.Print(fmt::format("{}  {}", run->id(), Clean(run->display_name())));
  }
  return options.watch && !options.dry_run ? WatchRun(context, *run) : kExitOk;
}

}  // namespace

void AddSubmit(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("submit", "Submit one run");
  options->settings.AddTo(*command);
  command->add_option("--name", options->name, "Name of the run");
  command->add_option("--experiment", options->experiment, "Experiment to put it into")
      ->type_name("ID");
  command->add_option("--device", options->device, "auto, cpu, gpu, or a device such as cpu:0")
      ->type_name("DEVICE");
  options->queue.AddTo(*command);
  command->add_flag("--watch", options->watch, "Watch it until it ends");
  command->add_flag("--dry-run", options->dry_run,
                    "Check everything, show the model's size, submit nothing");
  command->footer(
      "Examples:\n  normlab submit --placement post --layers 12 --learning-rate 2e-3 --watch\n"
      "  normlab submit --set layers=6 --set steps=30 --name smoke\n"
      "  normlab submit --heads 5 --dry-run\n"
      "  normlab submit --steps 500 --priority low --after smoke --after 01J9ZK:any\n"
      "  normlab submit --help-settings\n\nPrints the run's id and name.");
  command->callback([&context, options] { context.exit_code = Submit(context, *options); });
}

}  // namespace normlab::client
