// normlab preset: the experiments that the server knows by name.
#include <fmt/format.h>

#include <memory>

#include "client/commands/commands.h"
#include "client/preset_session.h"
#include "client/term/table.h"

namespace normlab::client {
namespace {

using normlab::v1::ExperimentService;
using normlab::v1::Preset;

struct Options {
  PresetOptions preset;
  bool names_only = false;  // for completion
};

int ListPresets(Context& context, bool names_only) {
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  const auto answer =
      (*client)->Call((*client)->experiments(), &ExperimentService::Stub::ListPresets,
                      normlab::v1::ListPresetsRequest());
  if (!answer.ok()) return context.Fail(answer.status());
  Table table({{"preset"}, {"runs", Align::kRight}, {"title", Align::kLeft, /*shrinks=*/true}});
  for (const Preset& preset : answer->presets()) {
    if (names_only) {
      context.terminal.Print(Clean(preset.name()));
    } else if (context.json) {
      context.PrintJson(preset);
    } else {
      table.Add(
          {{Clean(preset.name())}, {std::to_string(preset.runs_size())}, {Clean(preset.title())}});
    }
  }
  if (!table.empty()) table.PrintTo(context.terminal);
  return kExitOk;
}

int RunCommand(Context& context, Options& options) {
  PresetOptions& preset = options.preset;
  if (options.names_only || (preset.preset.empty() && !preset.settings.wants_help())) {
    return ListPresets(context, options.names_only);
  }
  preset.command = "preset " + preset.preset;
  if (preset.out.empty()) preset.out = "normlab-" + preset.preset;
  return RunPreset(context, preset);
}

}  // namespace

void AddPreset(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand(
      "preset", "Run a built-in experiment and compare it with what is expected");
  command->add_option("preset", options->preset.preset, "Its name; without one, all are listed");
  AddPresetOptions(*command, options->preset,
                   "PRESET.csv, PRESET-table.csv and PRESET.svg; normlab-PRESET by default");
  command
      ->add_option("--only", options->preset.only,
                   "Only the runs that have one of these values; repeatable")
      ->type_name("SETTING=VALUE,...")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command->add_flag("--names", options->names_only)->group("");
  command->footer(
      "Examples:\n  normlab preset                      what there is\n"
      "  normlab preset warmup\n"
      "  normlab preset init-gradients --only layers=1,2,6 --only seed=1,2    a part of it\n"
      "  normlab preset placements --steps 60 --json\n"
      "\nWatches the runs, prints the table beside what is expected, and writes the curves, the\n"
      "table and a picture. Ctrl-C stops the watching, not the runs. The exit code is 6 when an\n"
      "expectation does not hold; runs that diverge count in the table alone.");
  command->callback([&context, options] { context.exit_code = RunCommand(context, *options); });
}

}  // namespace normlab::client
