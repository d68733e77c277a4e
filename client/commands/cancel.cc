// normlab cancel: ends runs.
#include <memory>

#include "client/commands/change_runs.h"
#include "client/commands/commands.h"

namespace normlab::client {

using normlab::v1::RunService;

void AddCancel(CLI::App& program, Context& context) {
  auto references = std::make_shared<std::vector<std::string>>();
  CLI::App* command = program.add_subcommand("cancel", "End runs; what they wrote is kept");
  command->add_option("run", *references, "Ids, prefixes of ids, or names")->required();
  command->footer("Examples:\n  normlab cancel 01J9ZK\n  normlab cancel 01J9ZK 01J9ZM");
  command->callback([&context, references] {
    context.exit_code = ChangeRuns(context, *references, &RunService::Stub::CancelRun).exit_code;
  });
}

}  // namespace normlab::client
