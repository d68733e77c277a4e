// normlab pin, unpin, archive and unarchive: what a run is kept from, and left out of.
#include <memory>

#include "client/commands/commands.h"
#include "client/commands/describe_run.h"

namespace normlab::client {
namespace {

using normlab::v1::Run;

struct Verb {
  const char* name;
  const char* help;
  const char* field;
  void (Run::*set)(bool);
  bool value;
  const char* said;
};
constexpr Verb kVerbs[] = {
    {"pin", "Keep runs from rm and prune", "pinned", &Run::set_pinned, true, "pinned"},
    {"unpin", "Let runs be deleted again", "pinned", &Run::set_pinned, false, "not pinned"},
    {"archive", "Leave runs out of lists", "archived", &Run::set_archived, true, "archived"},
    {"unarchive", "Put runs back into lists", "archived", &Run::set_archived, false,
     "not archived"},
};

}  // namespace

void AddPin(CLI::App& program, Context& context) {
  for (const Verb& verb : kVerbs) {
    auto references = std::make_shared<std::vector<std::string>>();
    CLI::App* command = program.add_subcommand(verb.name, verb.help);
    command->add_option("run", *references, "Ids, prefixes of ids, or names")->required();
    command->footer(std::string("Examples:\n  normlab ") + verb.name + " 01J9ZK 01J9ZM");
    command->callback([&context, &verb, references] {
      context.exit_code = DescribeRuns(
          context, *references, verb.field, [&verb](Run& run) { (run.*verb.set)(verb.value); },
          [&verb](const Run&) { return std::string(verb.said); });
    });
  }
}

}  // namespace normlab::client
