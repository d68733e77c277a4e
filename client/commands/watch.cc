// normlab watch: curves and progress of runs until they end.
#include <fmt/format.h>

#include <memory>

#include "client/commands/commands.h"
#include "client/run_ref.h"
#include "client/term/text.h"
#include "client/watch_session.h"

namespace normlab::client {
namespace {

using normlab::v1::Experiment;
using normlab::v1::ExperimentService;
using normlab::v1::Run;

struct Options {
  std::vector<std::string> references;
  std::string experiment;
};

absl::StatusOr<WatchTask> TaskOf(ApiClient& client, const Options& options) {
  if (!options.experiment.empty()) {
    WatchTask task;
    normlab::v1::GetExperimentRequest request;
    request.set_id(options.experiment);
    const absl::StatusOr<Experiment> experiment =
        client.Call(client.experiments(), &ExperimentService::Stub::GetExperiment, request);
    if (!experiment.ok()) return experiment.status();
    task.title = experiment->display_name();
    task.request.set_experiment(experiment->id());
    task.runs.assign(experiment->runs().begin(), experiment->runs().end());
    task.again = "normlab watch --experiment " + experiment->id();
    return task;
  }
  absl::StatusOr<std::vector<Run>> runs = ResolveRuns(client, options.references);
  if (!runs.ok()) return runs.status();
  return TaskOfRuns(*std::move(runs));
}

int WatchCommand(Context& context, const Options& options) {
  if (options.references.empty() == options.experiment.empty()) {
    return context.FailUsage("name the runs to watch, or one --experiment");
  }
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  const absl::StatusOr<WatchTask> task = TaskOf(**client, options);
  if (!task.ok()) return context.Fail(task.status());
  const absl::StatusOr<WatchOutcome> outcome = Watch(context, *task);
  return outcome.ok() ? outcome->exit_code() : context.Fail(outcome.status());
}

}  // namespace

void AddWatch(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("watch", "Watch runs until they end; Ctrl-C stops watching only");
  command->add_option("run", options->references, "Ids, prefixes of ids, or names");
  command->add_option("--experiment", options->experiment, "All runs of this experiment")
      ->type_name("ID");
  command->footer(
      "Examples:\n  normlab watch 01J9ZK\n  normlab watch 01J9ZK 01J9ZM\n"
      "  normlab watch 01J9ZK --json   events, one a line: run, attempt, points, progress, end\n"
      "\nThe exit code says how the runs ended: 0, 1 failed or cancelled, 5 diverged. A paused\n"
      "run has not ended: watching goes on until somebody resumes it and it ends.");
  command->callback([&context, options] { context.exit_code = WatchCommand(context, *options); });
}

}  // namespace normlab::client
