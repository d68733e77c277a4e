// normlab hold and release: queued runs that are not to start yet.
#include <memory>

#include "client/commands/change_runs.h"
#include "client/commands/commands.h"

namespace normlab::client {

using normlab::v1::RunService;

void AddHold(CLI::App& program, Context& context) {
  auto held = std::make_shared<std::vector<std::string>>();
  CLI::App* hold =
      program.add_subcommand("hold", "Keep queued runs in the queue until they are released");
  hold->add_option("run", *held, "Ids, prefixes of ids, or names")->required();
  hold->footer("Examples:\n  normlab hold 01J9ZK\n  normlab submit --layers 12 --hold");
  hold->callback([&context, held] {
    context.exit_code =
        ChangeRuns(context, *held, &RunService::Stub::HoldRun, {}, "held").exit_code;
  });
  auto released = std::make_shared<std::vector<std::string>>();
  CLI::App* release = program.add_subcommand("release", "Let held runs start in their turn");
  release->add_option("run", *released, "Ids, prefixes of ids, or names")->required();
  release->footer("Examples:\n  normlab release 01J9ZK 01J9ZM");
  release->callback([&context, released] {
    context.exit_code =
        ChangeRuns(context, *released, &RunService::Stub::ReleaseRun, {}, "released").exit_code;
  });
}

}  // namespace normlab::client
