// normlab cancel: ends runs.
#include <fmt/format.h>

#include <memory>

#include "client/commands/commands.h"
#include "client/run_ref.h"
#include "client/term/text.h"

namespace normlab::client {
namespace {

using normlab::v1::Run;
using normlab::v1::RunService;

// Goes on after a failure: one run that has ended already must not save the others.
int Cancel(Context& context, const std::vector<std::string>& references) {
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  int exit_code = kExitOk;
  for (const std::string& reference : references) {
    absl::StatusOr<Run> run = ResolveRun(**client, reference);
    if (run.ok()) {
      normlab::v1::CancelRunRequest request;
      request.set_id(run->id());
      run = (*client)->Call((*client)->runs(), &RunService::Stub::CancelRun, request);
    }
    if (!run.ok()) {
      exit_code = context.Fail(run.status());
    } else if (context.json) {
      context.PrintJson(*run);
    } else {
      context.terminal.Print(fmt::format("{}: {}", Clean(run->display_name()),
                                         StateText(run->state(), context.terminal.style())));
    }
  }
  return exit_code;
}

}  // namespace

void AddCancel(CLI::App& program, Context& context) {
  auto references = std::make_shared<std::vector<std::string>>();
  CLI::App* command = program.add_subcommand("cancel", "End runs; what they wrote is kept");
  command->add_option("run", *references, "Ids, prefixes of ids, or names")->required();
  command->footer("Examples:\n  normlab cancel 01J9ZK\n  normlab cancel 01J9ZK 01J9ZM");
  command->callback([&context, references] { context.exit_code = Cancel(context, *references); });
}

}  // namespace normlab::client
