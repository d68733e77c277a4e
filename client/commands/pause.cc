// normlab pause: runs give their devices back and can be resumed.
#include <memory>

#include "client/commands/change_runs.h"
#include "client/commands/commands.h"

namespace normlab::client {

using normlab::v1::RunService;

void AddPause(CLI::App& program, Context& context) {
  auto references = std::make_shared<std::vector<std::string>>();
  CLI::App* command = program.add_subcommand(
      "pause", "Make runs write a checkpoint and give their devices to others");
  command->add_option("run", *references, "Ids, prefixes of ids, or names")->required();
  command->footer(
      "Examples:\n  normlab pause 01J9ZK\n  normlab pause \"Pre-Norm · no warmup\" 01J9ZM\n"
      "\nA queued run is paused at once. One that trains ends its present step and writes a\n"
      "checkpoint: it is pausing until then. Go on with: normlab resume RUN");
  command->callback([&context, references] {
    context.exit_code = ChangeRuns(context, *references, &RunService::Stub::PauseRun).exit_code;
  });
}

}  // namespace normlab::client
