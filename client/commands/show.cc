// normlab show: everything about one run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>
#include <memory>

#include "client/commands/commands.h"
#include "client/local_time.h"
#include "client/queue_flags.h"
#include "client/run_facts.h"
#include "client/run_ref.h"
#include "client/term/text.h"
#include "server/export/number_text.h"

namespace normlab::client {
namespace {

using normlab::v1::Attempt;
using normlab::v1::Run;

void PrintTimes(const Run& run, Terminal& terminal) {
  if (run.has_create_time()) PrintFact(terminal, "created", LocalTime(run.create_time()));
  if (run.has_start_time()) PrintFact(terminal, "started", LocalTime(run.start_time()));
  if (run.has_end_time()) PrintFact(terminal, "ended", LocalTime(run.end_time()));
  // Time with a device: what a run waited and was paused does not count.
  if (run.attempts_size() > 0) PrintFact(terminal, "trained for", DurationText(run.run_seconds()));
}

void PrintSummary(const Run& run, Terminal& terminal) {
  const auto& summary = run.summary();
  const auto number = [](bool present, double value) {
    return present ? exporter::ShortNumberText(value) : "";
  };
  PrintFact(terminal, "final loss", number(summary.has_final_loss(), summary.final_loss()));
  PrintFact(terminal, "validation loss",
            number(summary.has_validation_loss(), summary.validation_loss()));
  PrintFact(terminal, "smallest loss", number(summary.has_min_loss(), summary.min_loss()));
  PrintFact(terminal, "gradient norm",
            number(summary.has_final_gradient_norm(), summary.final_gradient_norm()));
  PrintFact(terminal, "largest norm",
            number(summary.has_max_gradient_norm(), summary.max_gradient_norm()));
  if (summary.has_first_bad_step()) {
    PrintFact(terminal, "not finite at", fmt::format("step {}", summary.first_bad_step()));
  }
  PrintModelSize(summary, terminal);
  PrintFact(terminal, "instructions", Clean(summary.instruction_set()));
}

void PrintAttempts(const Run& run, Terminal& terminal) {
  for (const Attempt& attempt : run.attempts()) {
    std::string text = fmt::format("{} on {}, step {}", attempt.number(), Clean(attempt.device()),
                                   CountText(attempt.last_step()));
    if (attempt.resumed_from_step() > 0) {
      text +=
          fmt::format(", from the checkpoint of step {}", CountText(attempt.resumed_from_step()));
    }
    if (attempt.checkpoint_step() > 0) {
      text += fmt::format(", has a checkpoint of step {}", CountText(attempt.checkpoint_step()));
    }
    if (attempt.run_seconds() > 0) text += ", " + DurationText(attempt.run_seconds());
    if (!attempt.end_reason().empty()) text += "; " + Clean(attempt.end_reason());
    PrintFact(terminal, "attempt", text);
  }
}

// What it asked of the queue, where that is not what all runs ask.
void PrintQueue(const Run& run, Terminal& terminal) {
  if (run.held()) PrintFact(terminal, "held", "release it with normlab release " + run.id());
  if (run.priority() != "normal") PrintFact(terminal, "priority", Clean(run.priority()));
  std::string after;
  for (const auto& dependency : run.after()) {
    after += (after.empty() ? "" : ", ") + DependencyText(dependency);
  }
  PrintFact(terminal, "starts after", after);
  PrintFact(terminal, "asks for", ResourcesText(run.resources()));
}

void PrintRun(const Run& run, Terminal& terminal) {
  PrintFact(terminal, "name", Clean(run.display_name()));
  PrintFact(terminal, "id", run.id());
  PrintFact(terminal, "labels", Clean(fmt::format("{}", fmt::join(run.labels(), ", "))));
  PrintFact(terminal, "notes", Clean(run.notes()));
  if (run.pinned()) PrintFact(terminal, "pinned", "yes");
  if (run.archived()) PrintFact(terminal, "archived", "yes");
  PrintFact(terminal, "state", StateText(run.state(), terminal.style()));
  PrintFact(terminal, "waits for", Clean(run.wait_reason()));
  PrintQueue(run, terminal);
  PrintFact(terminal, "reason", Clean(run.end_reason()));
  if (run.state() == Run::STATE_PAUSED)
    PrintFact(terminal, "go on with", "normlab resume " + run.id());
  PrintFact(terminal, "experiment", run.experiment());
  PrintFact(terminal, "user", Clean(run.user()));
  PrintFact(terminal, "device", Clean(run.device()));
  PrintFact(terminal, "settings", GivenSettings(run));
  PrintFact(terminal, "resolved", ResolvedSettings(run));
  PrintFact(
      terminal, "step",
      fmt::format("{} of {}", CountText(run.progress().step()), CountText(run.progress().steps())));
  PrintTimes(run, terminal);
  PrintSummary(run, terminal);
  PrintAttempts(run, terminal);
}

int Show(Context& context, const std::string& reference) {
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  const absl::StatusOr<Run> run = ResolveRun(**client, reference);
  if (!run.ok()) return context.Fail(run.status());
  if (context.json) {
    context.PrintJson(*run);
  } else {
    PrintRun(*run, context.terminal);
  }
  return kExitOk;
}

}  // namespace

void AddShow(CLI::App& program, Context& context) {
  auto reference = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand("show", "Show one run: state, settings, summary");
  command->add_option("run", *reference, "Id, prefix of an id, or name")->required();
  command->footer(
      "Examples:\n  normlab show 01J9ZK\n  normlab show \"Pre-Norm · no warmup\"\n"
      "  normlab show 01J9ZK --json");
  command->callback([&context, reference] { context.exit_code = Show(context, *reference); });
}

}  // namespace normlab::client
