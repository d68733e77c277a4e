// normlab resume: paused runs go on from their checkpoints.
#include <memory>

#include "client/commands/change_runs.h"
#include "client/commands/commands.h"
#include "client/watch_session.h"

namespace normlab::client {
namespace {

using normlab::v1::RunService;

struct Options {
  std::vector<std::string> references;
  bool watch = false;
};

int Resume(Context& context, const Options& options) {
  const ChangedRuns resumed = ChangeRuns(context, options.references, &RunService::Stub::ResumeRun);
  if (!options.watch || resumed.runs.empty()) return resumed.exit_code;
  const absl::StatusOr<WatchOutcome> outcome = Watch(context, TaskOfRuns(resumed.runs));
  if (!outcome.ok()) return context.Fail(outcome.status());
  const int watched = outcome->exit_code();
  return watched != kExitOk ? watched : resumed.exit_code;
}

}  // namespace

void AddResume(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("resume", "Let paused runs go on, exactly as if never paused");
  command->add_option("run", options->references, "Ids, prefixes of ids, or names")->required();
  command->add_flag("--watch", options->watch, "Watch them until they end");
  command->footer(
      "Examples:\n  normlab resume 01J9ZK\n  normlab resume 01J9ZK 01J9ZM --watch\n"
      "\nA resumed run waits at its old place in the queue, and goes on from its latest "
      "checkpoint.");
  command->callback([&context, options] { context.exit_code = Resume(context, *options); });
}

}  // namespace normlab::client
