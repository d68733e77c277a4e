// normlab label: words to find runs by.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "client/commands/commands.h"
#include "client/commands/describe_run.h"
#include "client/term/text.h"

namespace normlab::client {
namespace {

using normlab::v1::Run;

struct Options {
  std::string reference;
  std::vector<std::string> add, remove;
};

void Change(const Options& options, Run& run) {
  std::vector<std::string> labels(run.labels().begin(), run.labels().end());
  for (const std::string& label : options.remove) std::erase(labels, label);
  for (const std::string& label : options.add) {
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
  }
  run.mutable_labels()->Assign(labels.begin(), labels.end());
}

int Label(Context& context, Options options, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.size() < 2 || (word[0] != '+' && word[0] != '-')) {
      return context.FailUsage(fmt::format(
          "\"{}\": write +LABEL to add a label and -LABEL to take it away", Clean(word)));
    }
    (word[0] == '+' ? options.add : options.remove).push_back(word.substr(1));
  }
  if (options.add.empty() && options.remove.empty()) {
    return context.FailUsage("say which label: +LABEL adds it, -LABEL takes it away");
  }
  return DescribeRuns(
      context, {options.reference}, "labels", [&options](Run& run) { Change(options, run); },
      [](const Run& run) {
        return run.labels().empty() ? std::string("no labels")
                                    : Clean(fmt::format("{}", fmt::join(run.labels(), ", ")));
      });
}

}  // namespace

void AddLabel(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("label", "Add labels to a run, or take them away");
  // -LABEL looks like an option: what is no option of this command is left for it to read, and not
  // passed on to the program, whose options are therefore here as well.
  command->fallthrough(false);
  command->allow_extras();
  command->add_flag("--json", context.json, "Print JSON");
  command->add_option("--data-dir", context.data_dir)->type_name("DIR");
  command->add_option("--server", context.server)->type_name("HOST:PORT");
  command->add_option("run", options->reference, "Id, prefix of an id, or name")->required();
  command->add_option("--add", options->add, "The same as +LABEL, for any label")
      ->type_name("LABEL")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--remove", options->remove, "The same as -LABEL, for any label")
      ->type_name("LABEL")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command->footer(
      "Examples:\n  normlab label 01J9ZK +best -draft\n"
      "  normlab label 01J9ZK --add '-odd one'");
  command->callback([&context, options, command] {
    context.exit_code = Label(context, *options, command->remaining());
  });
}

}  // namespace normlab::client
