// normlab plot: loss and gradient norm of runs as a picture.
#include <fmt/format.h>

#include <memory>

#include "client/commands/commands.h"
#include "client/output_file.h"
#include "client/read_curves.h"
#include "client/run_ref.h"
#include "client/term/text.h"
#include "server/export/points_json.h"
#include "server/export/svg_plot.h"

namespace normlab::client {
namespace {

using normlab::v1::Run;

struct Options {
  std::vector<std::string> references;
  std::string path;
  std::string title;
};

int Plot(Context& context, const Options& options) {
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  const absl::StatusOr<std::vector<Run>> runs = ResolveRuns(**client, options.references);
  if (!runs.ok()) return context.Fail(runs.status());
  const auto curves = ReadCurves(**client, *runs, {"loss", "gradient_norm"});
  if (!curves.ok()) return context.Fail(curves.status());
  const std::string svg = exporter::PlotSvg(*curves, {options.title, ""});
  if (options.path == "-") {
    context.terminal.Write(svg);
    return kExitOk;
  }
  if (absl::Status status = WriteFile(options.path, svg); !status.ok()) {
    return context.Fail(status);
  }
  if (context.json) {
    std::string json = "{\"path\":";
    exporter::AppendJsonString(json, options.path);
    context.terminal.Print(json + "}");
  } else {
    context.terminal.Print(Clean(options.path));
  }
  return kExitOk;
}

}  // namespace

void AddPlot(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("plot", "Draw loss and gradient norm of runs as an SVG picture");
  command->add_option("run", options->references, "Ids, prefixes of ids, or names")->required();
  command->add_option("-o,--output", options->path, "File; - is standard output")
      ->type_name("FILE.svg")
      ->required();
  command->add_option("--title", options->title, "Heading of the picture");
  command->footer(
      "Examples:\n  normlab plot 01J9ZK -o run.svg\n"
      "  normlab plot 01J9ZK 01J9ZM -o both.svg --title \"Pre and Post\"");
  command->callback([&context, options] { context.exit_code = Plot(context, *options); });
}

}  // namespace normlab::client
