// normlab article: the built-in experiment, from submit to table, CSV and picture.
#include <memory>

#include "client/commands/commands.h"
#include "client/preset_session.h"

namespace normlab::client {

void AddArticle(CLI::App& program, Context& context) {
  auto options = std::make_shared<PresetOptions>();
  options->preset = "article";
  options->command = "article";
  options->out = "normlab-article";
  CLI::App* command = program.add_subcommand(
      "article", "Run the article's experiment: Pre-Norm, Post-Norm, Post-Norm with warmup");
  AddPresetOptions(*command, *options, "article.csv and article.svg");
  command->footer(
      "Examples:\n  normlab article\n"
      "  normlab article --layers 6 --steps 30 --out smoke    the same, small\n"
      "  normlab article --seed 8 --json\n"
      "\nShows the curves while the runs train, prints final loss and largest gradient norm\n"
      "beside the published figures, and writes article.csv and article.svg. Ctrl-C stops the\n"
      "watching, not the runs.");
  command->callback([&context, options] { context.exit_code = RunPreset(context, *options); });
}

}  // namespace normlab::client
