// normlab retry: ended runs are tried again.
#include <memory>

#include "client/commands/change_runs.h"
#include "client/commands/commands.h"
#include "client/watch_session.h"

namespace normlab::client {
namespace {

using normlab::v1::RetryRunRequest;
using normlab::v1::RunService;

struct Options {
  std::vector<std::string> references;
  bool from_start = false;
  bool watch = false;
};

int Retry(Context& context, const Options& options) {
  RetryRunRequest request;
  request.set_from_start(options.from_start);
  const ChangedRuns retried =
      ChangeRuns(context, options.references, &RunService::Stub::RetryRun, request);
  if (!options.watch || retried.runs.empty()) return retried.exit_code;
  const absl::StatusOr<WatchOutcome> outcome = Watch(context, TaskOfRuns(retried.runs));
  if (!outcome.ok()) return context.Fail(outcome.status());
  const int watched = outcome->exit_code();
  return watched != kExitOk ? watched : retried.exit_code;
}

}  // namespace

void AddRetry(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand(
      "retry", "Try runs again that failed, diverged, were cancelled or ran out of time");
  command->add_option("run", options->references, "Ids, prefixes of ids, or names")->required();
  command->add_flag("--from-start", options->from_start,
                    "Begin with the first step, though there is a checkpoint");
  command->add_flag("--watch", options->watch, "Watch them until they end");
  command->footer(
      "Examples:\n  normlab retry 01J9ZK\n  normlab retry 01J9ZK --from-start --watch\n"
      "\nA run that is tried again waits at its old place in the queue, and goes on from its "
      "latest checkpoint if it has one. A run that succeeded is left as it is.");
  command->callback([&context, options] { context.exit_code = Retry(context, *options); });
}

}  // namespace normlab::client
