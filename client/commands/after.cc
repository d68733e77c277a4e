// normlab after and priority: what a queued run waits for, and its class in the queue.
#include <fmt/format.h>

#include <memory>

#include "client/commands/commands.h"
#include "client/commands/describe_run.h"
#include "client/queue_flags.h"
#include "client/term/text.h"

namespace normlab::client {
namespace {

using normlab::v1::Dependency;
using normlab::v1::Run;

std::string AfterText(const Run& run) {
  std::string text;
  for (const Dependency& dependency : run.after()) {
    text += (text.empty() ? "starts after " : " and ") + DependencyText(dependency);
  }
  return text.empty() ? "waits for no run" : text;
}

struct AfterOptions {
  std::string reference;
  std::vector<std::string> others;
  bool none = false;
};

int ChangeAfter(Context& context, const AfterOptions& options) {
  if (options.others.empty() != options.none) {
    return context.FailUsage("name the runs to wait for, or --none");
  }
  Run wanted;
  if (!options.others.empty()) {
    const auto client = context.Connect();
    if (!client.ok()) return context.Fail(client.status());
    for (const std::string& text : options.others) {
      absl::StatusOr<Dependency> dependency = QueueFlags::ParseDependency(**client, text);
      if (!dependency.ok()) return context.Fail(dependency.status());
      *wanted.add_after() = *std::move(dependency);
    }
  }
  return DescribeRuns(
      context, {options.reference}, "after",
      [&wanted](Run& run) { *run.mutable_after() = wanted.after(); }, AfterText);
}

struct PriorityOptions {
  std::string priority;
  std::vector<std::string> references;
};

void AddPriority(CLI::App& program, Context& context) {
  auto options = std::make_shared<PriorityOptions>();
  CLI::App* command =
      program.add_subcommand("priority", "Change the class of queued runs: high, normal, low");
  command->add_option("class", options->priority, "high (admins), normal or low")->required();
  command->add_option("run", options->references, "Ids, prefixes of ids, or names")->required();
  command->footer(
      "Examples:\n  normlab priority low 01J9ZK 01J9ZM\n"
      "\nEvery run of a class starts before those of a lower one. In its new class a run stands\n"
      "where its age puts it.");
  command->callback([&context, options] {
    context.exit_code = DescribeRuns(
        context, options->references, "priority",
        [&options](Run& run) { run.set_priority(options->priority); },
        [](const Run& run) { return Clean(run.priority()); });
  });
}

}  // namespace

void AddAfter(CLI::App& program, Context& context) {
  auto options = std::make_shared<AfterOptions>();
  CLI::App* command = program.add_subcommand("after", "Change which runs a queued one waits for");
  command->add_option("run", options->reference, "Id, prefix of an id, or name")->required();
  command
      ->add_option("other", options->others,
                   "Runs that must have succeeded, or with :any have ended, before it starts")
      ->type_name("RUN[:any]");
  command->add_flag("--none", options->none, "It waits for no run any more");
  command->footer(
      "Examples:\n  normlab after 01J9ZK smoke\n  normlab after 01J9ZK 01J9ZM 01J9ZN:any\n"
      "  normlab after 01J9ZK --none\n"
      "\nA run is cancelled when one that was to succeed before it has not. It is not revived "
      "when\n"
      "that one is tried again: try both again.");
  command->callback([&context, options] { context.exit_code = ChangeAfter(context, *options); });
  AddPriority(program, context);
}

}  // namespace normlab::client
