// normlab rm: deletes runs for good.
#include <fmt/format.h>

#include <memory>

#include "client/ask.h"
#include "client/commands/commands.h"
#include "client/run_ref.h"
#include "client/term/style.h"
#include "client/term/text.h"

namespace normlab::client {
namespace {

using normlab::v1::Run;
using normlab::v1::RunService;

struct Options {
  std::vector<std::string> references;
  bool yes = false;
};

std::string Question(const std::vector<Run>& runs) {
  const std::string what =
      runs.size() == 1 ? fmt::format("\"{}\" ({})", Clean(runs[0].display_name()), runs[0].id())
                       : fmt::format("these {} runs", runs.size());
  return fmt::format("Delete {} with curves, logs and checkpoints?", what);
}

int Rm(Context& context, const Options& options) {
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  const absl::StatusOr<std::vector<Run>> runs = ResolveRuns(**client, options.references);
  if (!runs.ok()) return context.Fail(runs.status());
  if (!options.yes) {
    for (const Run& run : *runs) {
      if (runs->size() == 1) break;  // the question names it
      context.terminal.Print(
          fmt::format("  {}  {}  {}", run.id(), StateWord(run.state()), Clean(run.display_name())));
    }
    const absl::StatusOr<bool> sure = Ask(context, Question(*runs));
    if (!sure.ok()) return context.Fail(sure.status());
    if (!*sure) return kExitOk;
  }
  int code = kExitOk;
  for (const Run& run : *runs) {
    normlab::v1::DeleteRunRequest request;
    request.set_id(run.id());
    const auto done = (*client)->Call((*client)->runs(), &RunService::Stub::DeleteRun, request);
    if (!done.ok()) {
      code = context.Fail(done.status());
    } else if (context.json) {
      normlab::v1::RunDeleted deleted;
      deleted.set_run(run.id());
      context.PrintJson(deleted);
    } else {
      context.terminal.Print(fmt::format("{}: deleted", Clean(run.display_name())));
    }
  }
  return code;
}

}  // namespace

void AddRm(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("rm", "Delete runs that have ended, for good");
  command->add_option("run", options->references, "Ids, prefixes of ids, or names")->required();
  command->add_flag("-y,--yes", options->yes, "Do not ask");
  command->footer(
      "Examples:\n  normlab rm 01J9ZK\n  normlab rm 01J9ZK 01J9ZM --yes\n"
      "\nA run that has not ended, or that is pinned, is never deleted.");
  command->callback([&context, options] { context.exit_code = Rm(context, *options); });
}

}  // namespace normlab::client
