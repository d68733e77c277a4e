// normlab move: another order of one's own queued runs.
#include <fmt/format.h>

#include <memory>

#include "client/commands/change_runs.h"
#include "client/commands/commands.h"

namespace normlab::client {
namespace {

using normlab::v1::MoveRunRequest;
using normlab::v1::Run;
using normlab::v1::RunService;

struct Options {
  std::string reference;
  bool first = false;
  bool last = false;
  std::string before;
  std::string behind;
};

int Move(Context& context, const Options& options) {
  const int places =
      options.first + options.last + !options.before.empty() + !options.behind.empty();
  if (places != 1) {
    return context.FailUsage("give one of --first, --last, --before RUN and --behind RUN");
  }
  MoveRunRequest request;
  std::string said;
  if (options.first || options.last) {
    options.first ? request.set_first(true) : request.set_last(true);
    said = options.first ? "first of its user's queued runs" : "last of its user's queued runs";
  } else {
    const auto client = context.Connect();
    if (!client.ok()) return context.Fail(client.status());
    const bool before = !options.before.empty();
    const absl::StatusOr<Run> other =
        ResolveRun(**client, before ? options.before : options.behind);
    if (!other.ok()) return context.Fail(other.status());
    before ? request.set_before(other->id()) : request.set_behind(other->id());
    said = fmt::format("{} {}", before ? "before" : "behind", Clean(other->display_name()));
  }
  return ChangeRuns(context, {options.reference}, &RunService::Stub::MoveRun, request, said)
      .exit_code;
}

}  // namespace

void AddMove(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("move", "Change a run's place among the queued runs of its user");
  command->add_option("run", options->reference, "Id, prefix of an id, or name")->required();
  command->add_flag("--first", options->first, "Before all others of its class");
  command->add_flag("--last", options->last, "Behind all others of its class");
  command->add_option("--before", options->before, "Right before this one")->type_name("RUN");
  command->add_option("--behind", options->behind, "Right behind this one")->type_name("RUN");
  command->footer(
      "Examples:\n  normlab move 01J9ZK --first\n  normlab move 01J9ZK --behind 01J9ZM\n"
      "\nThe runs of other users keep their places; normlab priority changes the class.");
  command->callback([&context, options] { context.exit_code = Move(context, *options); });
}

}  // namespace normlab::client
