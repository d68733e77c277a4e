// normlab rename and normlab note: a run's name and notes.
#include <memory>

#include "client/commands/commands.h"
#include "client/commands/describe_run.h"
#include "client/term/text.h"

namespace normlab::client {
namespace {

using normlab::v1::Run;

struct Options {
  std::string reference;
  std::string text;
};

}  // namespace

void AddRename(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("rename", "Give a run another name");
  command->add_option("run", options->reference, "Id, prefix of an id, or name")->required();
  command->add_option("name", options->text, "Its new name, 1 to 300 bytes")->required();
  command->footer("Examples:\n  normlab rename 01J9ZK 'post-norm, warm'");
  command->callback([&context, options] {
    context.exit_code = DescribeRuns(
        context, {options->reference}, "display_name",
        [options](Run& run) { run.set_display_name(options->text); },
        [](const Run& run) { return "is the name of " + run.id(); });
  });
}

void AddNote(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("note", "Write notes on a run, in place of those there");
  command->add_option("run", options->reference, "Id, prefix of an id, or name")->required();
  command->add_option("notes", options->text, "The notes, at most 10,000 bytes; '' removes them")
      ->required();
  command->footer("Examples:\n  normlab note 01J9ZK 'diverged after the spike at 1,200'");
  command->callback([&context, options] {
    context.exit_code = DescribeRuns(
        context, {options->reference}, "notes",
        [options](Run& run) { run.set_notes(options->text); },
        [](const Run& run) { return run.notes().empty() ? "no notes" : Clean(run.notes()); });
  });
}

}  // namespace normlab::client
