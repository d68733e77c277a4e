// normlab ls: the runs, newest first.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "client/commands/commands.h"
#include "client/problems.h"
#include "client/run_ref.h"
#include "client/term/live_view.h"
#include "client/term/table.h"
#include "server/domain/filter_fields.h"
#include "server/domain/settings.h"
#include "server/export/number_text.h"

namespace normlab::client {
namespace {

using normlab::v1::ListRunsRequest;
using normlab::v1::Run;

struct Options {
  std::vector<std::string> states;
  std::string experiment;
  std::vector<std::string> filter;
  std::string order_by;
  int limit = 50;
  bool all = false;
  bool fields = false;
};

// "running", "STATE_RUNNING", "timed-out": any spelling of a state.
absl::StatusOr<Run::State> ParseState(const std::string& text) {
  std::string name;
  for (const char c : text) {
    name += c == '-' || c == ' ' ? '_' : static_cast<char>(std::toupper(static_cast<int>(c)));
  }
  if (name.rfind("STATE_", 0) != 0) name.insert(0, "STATE_");
  Run::State state;
  if (Run::State_Parse(name, &state) && state != Run::STATE_UNSPECIFIED) return state;
  return absl::InvalidArgumentError(fmt::format(
      "\"{}\" is no state; use queued, starting, running, pausing, paused, cancelling, succeeded, "
      "failed, cancelled, diverged or timed-out",
      Clean(text)));
}

std::string OptionalNumber(bool present, double value) {
  return present ? exporter::ShortNumberText(value) : "";
}

Table RunTable(const std::vector<Run>& runs) {
  std::vector<Table::Column> columns = {{"id"},
                                        {"state"},
                                        {"name", Align::kLeft, /*shrinks=*/true},
                                        {"placement", Align::kLeft, false, /*optional=*/true},
                                        {"layers", Align::kRight, false, /*optional=*/true},
                                        {"rate", Align::kRight, false, /*optional=*/true},
                                        {"step", Align::kRight},
                                        {"loss", Align::kRight},
                                        {"grad norm", Align::kRight, false, /*optional=*/true},
                                        {"user", Align::kLeft, false, /*optional=*/true}};
  const bool labelled =
      std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.labels_size() > 0; });
  if (labelled) columns.push_back({"labels", Align::kLeft, /*shrinks=*/true});
  Table table(columns);
  const std::vector<std::string> ids = ShortIds(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    const Run& run = runs[i];
    const auto& summary = run.summary();
    const normlab::v1::RunSpec& spec = run.has_effective_spec() ? run.effective_spec() : run.spec();
    std::vector<Table::Cell> cells = {
        {ids[i]},
        {StateGlyph(run.state()) + " " + StateWord(run.state())},
        {Clean(run.display_name())},
        {Clean(domain::ValueText(spec, "placement"))},
        {domain::ValueText(spec, "layers")},
        {domain::ValueText(spec, "learning_rate")},
        {fmt::format("{}/{}", run.progress().step(), domain::ValueText(spec, "steps"))},
        {OptionalNumber(summary.has_final_loss(), summary.final_loss())},
        {OptionalNumber(summary.has_final_gradient_norm(), summary.final_gradient_norm())},
        {Clean(run.user())}};
    if (labelled) cells.push_back({Clean(fmt::format("{}", fmt::join(run.labels(), ", ")))});
    table.Add(std::move(cells));
  }
  return table;
}

int Ls(Context& context, const Options& options) {
  if (options.fields) {
    context.terminal.Write(domain::FilterFieldsToMarkdown());
    context.terminal.Print("\nand every setting: normlab submit --help-settings");
    return kExitOk;
  }
  ListRunsRequest request;
  request.set_experiment(options.experiment);
  request.set_filter(fmt::format("{}", fmt::join(options.filter, " ")));
  request.set_order_by(options.order_by);
  for (const std::string& text : options.states) {
    const absl::StatusOr<Run::State> state = ParseState(text);
    if (!state.ok()) return context.FailUsage(std::string(state.status().message()));
    request.add_states(*state);
  }
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  const absl::StatusOr<std::vector<Run>> runs =
      ListAllRuns(**client, request, options.all ? 0 : options.limit);
  if (!runs.ok()) return context.Fail(runs.status());
  TellProblems(context, **client);
  if (context.json) {
    for (const Run& run : *runs) context.PrintJson(run);
  } else if (!runs->empty()) {
    RunTable(*runs).PrintTo(context.terminal);
  } else if (context.terminal.smart()) {
    context.terminal.Print(request.filter().empty() ? "No runs. Start with: normlab article"
                                                    : "No run is like that.");
  }
  return kExitOk;
}

}  // namespace

void AddLs(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("ls", "List runs, newest first");
  command->add_option("filter", options->filter, "Only runs like that: 'state=running loss<0.1'");
  command->add_option("--order-by", options->order_by, "Fields, such as 'final_loss, created desc'")
      ->type_name("FIELDS");
  command->add_option("--state", options->states, "Only runs in this state; repeatable")
      ->type_name("STATE")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--experiment", options->experiment, "Only runs of this experiment")
      ->type_name("ID");
  command->add_option("-n,--limit", options->limit, "At most this many; 0 means all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--fields", options->fields, "Print what filters and orders may name");
  command->add_flag("--all", options->all, "All of them, as -n 0");
  command->footer(
      "Examples:\n  normlab ls\n  normlab ls 'layers>=12 placement=post loss=NaN' --order-by "
      "steps\n"
      "  normlab ls 'label=best OR pinned=true' --all\n  normlab ls archived=true\n"
      "  normlab ls --state running --state queued\n"
      "  normlab ls -n 0 --json      one run a line, as the API has it");
  command->callback([&context, options] { context.exit_code = Ls(context, *options); });
}

}  // namespace normlab::client
