// normlab show: everything about one run.
#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <ctime>
#include <memory>

#include "client/commands/commands.h"
#include "client/run_ref.h"
#include "client/term/text.h"
#include "server/domain/settings.h"
#include "server/export/number_text.h"

namespace normlab::client {
namespace {

using google::protobuf::util::TimeUtil;
using normlab::v1::Attempt;
using normlab::v1::Run;

void Line(Terminal& terminal, std::string_view name, const std::string& value) {
  if (value.empty()) return;
  terminal.Print(terminal.style().Dim(Pad(name, 16)) + value);
}

std::string LocalTime(const google::protobuf::Timestamp& time) {
  const std::time_t seconds = time.seconds();
  std::tm local{};
  char text[64];
  if (::localtime_r(&seconds, &local) == nullptr) return "";
  return std::string(text, std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local));
}

// "layers 6, steps 30": the settings that differ from the defaults.
std::string GivenSettings(const Run& run) {
  std::string given;
  for (const domain::SettingInfo& setting : domain::Settings()) {
    const std::string value = domain::ValueText(run.spec(), setting.name);
    if (!domain::IsSet(run.spec(), setting.name) || value == setting.default_text) continue;
    given += fmt::format("{}{} {}", given.empty() ? "" : ", ", setting.name, Clean(value));
  }
  return given.empty() ? "all at their defaults" : given;
}

// Time with a device: what a run waited and was paused does not count.
double TrainingSeconds(const Run& run) {
  double seconds = 0;
  for (const Attempt& attempt : run.attempts()) {
    const auto end = attempt.has_end_time() ? attempt.end_time() : TimeUtil::GetCurrentTime();
    seconds += static_cast<double>(TimeUtil::DurationToMicroseconds(end - attempt.start_time()));
  }
  return seconds * 1e-6;
}

void PrintTimes(const Run& run, Terminal& terminal) {
  if (run.has_create_time()) Line(terminal, "created", LocalTime(run.create_time()));
  if (run.has_start_time()) Line(terminal, "started", LocalTime(run.start_time()));
  if (run.has_end_time()) Line(terminal, "ended", LocalTime(run.end_time()));
  if (run.attempts_size() > 0) Line(terminal, "trained for", DurationText(TrainingSeconds(run)));
}

void PrintSummary(const Run& run, Terminal& terminal) {
  const auto& summary = run.summary();
  const auto number = [](bool present, double value) {
    return present ? exporter::ShortNumberText(value) : "";
  };
  Line(terminal, "final loss", number(summary.has_final_loss(), summary.final_loss()));
  Line(terminal, "validation loss",
       number(summary.has_validation_loss(), summary.validation_loss()));
  Line(terminal, "smallest loss", number(summary.has_min_loss(), summary.min_loss()));
  Line(terminal, "gradient norm",
       number(summary.has_final_gradient_norm(), summary.final_gradient_norm()));
  Line(terminal, "largest norm",
       number(summary.has_max_gradient_norm(), summary.max_gradient_norm()));
  if (summary.has_first_bad_step()) {
    Line(terminal, "not finite at", fmt::format("step {}", summary.first_bad_step()));
  }
  if (summary.has_parameter_count()) {
    Line(terminal, "parameters", CountText(summary.parameter_count()));
  }
  if (summary.has_flops_per_step()) {
    Line(terminal, "arithmetic",
         fmt::format("{:.3g} GFLOP a step", summary.flops_per_step() / 1e9));
  }
  if (summary.has_memory_bytes()) {
    Line(terminal, "memory", BytesText(static_cast<int64_t>(summary.memory_bytes())));
  }
  Line(terminal, "instructions", Clean(summary.instruction_set()));
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
    Line(terminal, "attempt", text);
  }
}

void PrintRun(const Run& run, Terminal& terminal) {
  Line(terminal, "name", Clean(run.display_name()));
  Line(terminal, "id", run.id());
  Line(terminal, "state", StateText(run.state(), terminal.style()));
  Line(terminal, "waits for", Clean(run.wait_reason()));
  Line(terminal, "reason", Clean(run.end_reason()));
  if (run.state() == Run::STATE_PAUSED) Line(terminal, "go on with", "normlab resume " + run.id());
  Line(terminal, "experiment", run.experiment());
  Line(terminal, "user", Clean(run.user()));
  Line(terminal, "device", Clean(run.device()));
  Line(terminal, "settings", GivenSettings(run));
  Line(
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
