// normlab cancel: ends runs, or those of an experiment.
#include <fmt/format.h>

#include <memory>

#include "client/commands/change_runs.h"
#include "client/commands/commands.h"
#include "client/experiment_ref.h"

namespace normlab::client {
namespace {

using normlab::v1::CancelExperimentRequest;
using normlab::v1::Experiment;
using normlab::v1::ExperimentService;
using normlab::v1::Run;
using normlab::v1::RunService;

struct Options {
  std::vector<std::string> references;
  std::string experiment;
};

int CancelExperiment(Context& context, const std::string& reference) {
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  const absl::StatusOr<std::string> id = ResolveExperiment(**client, reference);
  if (!id.ok()) return context.Fail(id.status());
  CancelExperimentRequest request;
  request.set_id(*id);
  const absl::StatusOr<Experiment> experiment = (*client)->Call(
      (*client)->experiments(), &ExperimentService::Stub::CancelExperiment, request);
  if (!experiment.ok()) return context.Fail(experiment.status());
  if (context.json) {
    context.PrintJson(*experiment);
    return kExitOk;
  }
  for (const Run& run : experiment->runs()) {
    context.terminal.Print(fmt::format("{}: {}", Clean(run.display_name()),
                                       StateText(run.state(), context.terminal.style())));
  }
  return kExitOk;
}

int Cancel(Context& context, const Options& options) {
  if (options.references.empty() == options.experiment.empty()) {
    return context.FailUsage("name the runs, or --experiment ID");
  }
  if (!options.experiment.empty()) return CancelExperiment(context, options.experiment);
  return ChangeRuns(context, options.references, &RunService::Stub::CancelRun).exit_code;
}

}  // namespace

void AddCancel(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("cancel", "End runs; what they wrote is kept");
  command->add_option("run", options->references, "Ids, prefixes of ids, or names");
  command
      ->add_option("--experiment", options->experiment,
                   "Every run of this experiment that has not ended")
      ->type_name("NAME|ID");
  command->footer(
      "Examples:\n  normlab cancel 01J9ZK\n  normlab cancel 01J9ZK 01J9ZM\n"
      "  normlab cancel --experiment depth-lr");
  command->callback([&context, options] { context.exit_code = Cancel(context, *options); });
}

}  // namespace normlab::client
