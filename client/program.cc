#include "client/program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "client/commands/commands.h"
#include "client/context.h"
#include "client/term/text.h"
#include "client/version.h"
#include "server/domain/nearest.h"

namespace normlab::client {
namespace {

constexpr const char* kDescription =
    "normlab: submit Transformer training runs, watch them, compare where the norm goes.";
constexpr const char* kFooter =
    "Examples:\n"
    "  normlab article                          three runs: Pre-Norm, Post-Norm, with warmup\n"
    "  normlab preset                           the other built-in experiments\n"
    "  normlab submit --placement post --layers 12 --watch\n"
    "  normlab sweep --grid layers=2,6,12 --grid placement=pre,post --seeds 3 --watch\n"
    "  normlab ls\n"
    "  normlab plot RUN RUN -o curves.svg\n"
    "\n"
    "RUN is any unique prefix of a run's id, or its name.\n"
    "Exit codes: 0 fine, 1 a run failed, was cancelled or timed out, 2 usage, 3 no server,\n"
    "4 refused or not found, 5 diverged, 6 a preset's expectation does not hold, 130 Ctrl-C.";

void AddGlobalOptions(CLI::App& program, Context& context) {
  program.add_flag("--json", context.json, "Print JSON, one value a line");
  program.add_option("--data-dir", context.data_dir, "Data folder of the server on this machine")
      ->type_name("DIR");
  program
      .add_option("--server", context.server,
                  "Server on TCP; NORMLAB_SERVER does the same, NORMLAB_TOKEN is its token")
      ->type_name("HOST:PORT");
  program.set_version_flag("--version", std::string("normlab ") + kVersion);
}

// The program, the command that was given, and its own one, if it has any.
std::vector<const CLI::App*> Given(const CLI::App& program) {
  std::vector<const CLI::App*> apps = {&program};
  while (!apps.back()->get_subcommands().empty()) {
    apps.push_back(apps.back()->get_subcommands().front());
  }
  return apps;
}

// Long names of the options that the given command knows, with and without their dashes in front.
std::vector<std::string> OptionNames(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* app : Given(program)) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back(name);
    }
  }
  return names;
}

// "there is no option --layer; did you mean --layers?"
std::string UnknownArgument(const CLI::App& program) {
  const std::vector<std::string> left = program.remaining(true);
  const std::string written = left.empty() ? "" : left.front();
  if (written.rfind("--", 0) != 0) {
    // Of the program, or of a command that has commands of its own.
    std::vector<std::string> names;
    for (const CLI::App* command : Given(program).back()->get_subcommands({})) {
      names.push_back(command->get_name());
    }
    if (names.empty()) return fmt::format("unexpected argument \"{}\"", Clean(written));
    const auto nearest = domain::NearestOf(written, names);
    return fmt::format("there is no command \"{}\"{}", Clean(written),
                       nearest ? fmt::format("; did you mean {}?", *nearest) : "");
  }
  const std::string name = written.substr(2, written.find('=') - 2);
  const auto nearest = domain::NearestOf(name, OptionNames(program));
  return fmt::format("there is no option --{}{}", Clean(name),
                     nearest ? fmt::format("; did you mean --{}?", *nearest) : "");
}

int FailParse(const CLI::App& program, const CLI::ParseError& error, Context& context) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    std::ostringstream out, err;
    program.exit(error, out, err);  // help or version
    context.terminal.Write(out.str());
    return kExitOk;
  }
  // What does not exist is often reported as what is missing.
  const int code = error.get_exit_code();
  const bool unknown =
      code == static_cast<int>(CLI::ExitCodes::ExtrasError) ||
      (code == static_cast<int>(CLI::ExitCodes::RequiredError) && !program.remaining(true).empty());
  std::string command;
  for (const CLI::App* given : Given(program)) {
    command += (command.empty() ? "" : " ") + given->get_name();
  }
  const std::string what = unknown ? UnknownArgument(program) : error.what();
  return context.FailUsage(fmt::format("{}\nsee: {} --help", what, command));
}

}  // namespace

int RunProgram(const std::vector<std::string>& arguments, Terminal& terminal) {
  Context context(terminal);
  CLI::App program(kDescription, "normlab");
  program.footer(kFooter);
  program.require_subcommand(1);
  program.fallthrough();
  program.get_formatter()->column_width(34);
  AddGlobalOptions(program, context);
  for (const auto add :
       {AddArticle, AddPreset,  AddSubmit, AddSweep,   AddLs,     AddShow,      AddWatch,
        AddProbe,   AddPause,   AddResume, AddRetry,   AddCancel, AddHold,      AddMove,
        AddAfter,   AddRename,  AddLabel,  AddNote,    AddPin,    AddRm,        AddPrune,
        AddQueue,   AddDevices, AddExport, AddPlot,    AddOpen,   AddLogin,     AddUser,
        AddAudit,   AddLog,     AddBackup, AddCompact, AddDoctor, AddCompletion}) {
    add(program, context);
  }
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    program.parse(reversed);  // CLI11 takes them from the back
  } catch (const CLI::ParseError& error) {
    return FailParse(program, error, context);
  }
  return context.exit_code;
}

}  // namespace normlab::client
