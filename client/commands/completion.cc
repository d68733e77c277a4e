// normlab completion: scripts for shells, made from the program's own commands and settings.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "client/commands/commands.h"
#include "client/settings_flags.h"
#include "server/domain/filter_fields.h"
#include "server/domain/settings.h"

namespace normlab::client {
namespace {

// The command and its own commands, such as those of `user`.
std::vector<const CLI::App*> Family(const CLI::App& command) {
  std::vector<const CLI::App*> apps = {&command};
  for (const CLI::App* own : command.get_subcommands({})) apps.push_back(own);
  return apps;
}

// What may follow a command: its own commands and flags, and the program's flags.
std::vector<std::string> WordsOf(const CLI::App& command, const CLI::App& program) {
  std::vector<std::string> flags;
  for (const CLI::App* own : command.get_subcommands({})) flags.push_back(own->get_name());
  std::vector<const CLI::App*> apps = Family(command);
  apps.push_back(&program);
  for (const CLI::App* app : apps) {
    for (const CLI::Option* option : app->get_options()) {
      // Of the two spellings of a setting only the first is offered.
      if (option->get_lnames().empty()) continue;
      std::string flag = "--" + option->get_lnames().front();
      if (std::find(flags.begin(), flags.end(), flag) == flags.end()) {
        flags.push_back(std::move(flag));
      }
    }
  }
  return flags;
}

// The options of a command and of its own commands, each name once.
std::vector<const CLI::Option*> OptionsOf(const CLI::App& command) {
  std::vector<const CLI::Option*> options;
  std::set<std::string> names;
  for (const CLI::App* app : Family(command)) {
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_lnames().empty()) continue;
      if (names.insert(option->get_lnames().front()).second) options.push_back(option);
    }
  }
  return options;
}

std::vector<std::string> CommandNames(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::string Words(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::vector<std::string> ValuesOf(const domain::SettingInfo& setting) {
  if (setting.type == domain::SettingType::kSwitch) return {"true", "false"};
  return setting.choices;
}

// What runs are ordered by.
std::vector<std::string> FieldNames() {
  std::vector<std::string> names;
  for (const domain::FilterField& field : domain::FilterFields()) names.push_back(field.name);
  return names;
}

// What an axis of a sweep begins with: "layers=".
std::vector<std::string> AxisBeginnings() {
  std::vector<std::string> names;
  for (const domain::SettingInfo& setting : domain::Settings()) {
    if (!setting.server_only) names.push_back(setting.name + "=");
  }
  return names;
}

std::string Bash(const CLI::App& program) {
  std::string script =
      "# bash completion of normlab. To use: source <(normlab completion bash)\n"
      "_normlab() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case ${COMP_WORDS[i]} in -*) ;; *) command=${COMP_WORDS[i]}; break ;; esac\n"
      "  done\n"
      "  case $before in\n";
  for (const domain::SettingInfo& setting : domain::Settings()) {
    const std::vector<std::string> values = ValuesOf(setting);
    if (values.empty()) continue;
    script += fmt::format("    {}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n",
                          FlagName(setting.name), Words(values));
  }
  script += fmt::format("    --order-by) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n",
                        Words(FieldNames()));
  script += fmt::format(
      "    --grid|--random) compopt -o nospace; COMPREPLY=($(compgen -W '{}' -- \"$word\")); "
      "return ;;\n",
      Words(AxisBeginnings()));
  script +=
      "    --role) COMPREPLY=($(compgen -W 'viewer member admin' -- \"$word\")); return ;;\n"
      "    -o|--list|--output|--out|--data-dir|--token-file) COMPREPLY=($(compgen -f -- "
      "\"$word\")); "
      "return ;;\n"
      "  esac\n"
      "  case $command in\n";
  for (const CLI::App* command : program.get_subcommands({})) {
    // The presets are the server's: it is asked, and when it is away only flags are offered.
    const bool preset = command->get_name() == "preset";
    script += fmt::format(
        "    {}) COMPREPLY=($(compgen -W \"{}{}\" -- \"$word\")) ;;\n", command->get_name(),
        preset ? "$(normlab preset --names 2>/dev/null) " : "", Words(WordsOf(*command, program)));
  }
  script += fmt::format("    *) COMPREPLY=($(compgen -W '{}' -- \"$word\")) ;;\n",
                        Words(CommandNames(program)));
  return script + "  esac\n}\ncomplete -F _normlab normlab\n";
}

std::string Zsh(const CLI::App& program) {
  return "# zsh completion of normlab. To use: source <(normlab completion zsh)\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         Bash(program);
}

// Text in single quotes of fish.
std::string FishQuoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string Fish(const CLI::App& program) {
  std::string script =
      "# fish completion of normlab. To use: normlab completion fish | source\n"
      "complete -c normlab -f\n";
  for (const CLI::App* command : program.get_subcommands({})) {
    script += fmt::format("complete -c normlab -n __fish_use_subcommand -a {} -d {}\n",
                          command->get_name(), FishQuoted(command->get_description()));
    if (command->get_name() == "preset") {
      script +=
          "complete -c normlab -n '__fish_seen_subcommand_from preset' "
          "-a '(normlab preset --names 2>/dev/null)'\n";
    }
    for (const CLI::App* own : command->get_subcommands({})) {
      script +=
          fmt::format("complete -c normlab -n '__fish_seen_subcommand_from {}' -a {} -d {}\n",
                      command->get_name(), own->get_name(), FishQuoted(own->get_description()));
    }
    for (const CLI::Option* option : OptionsOf(*command)) {
      const domain::SettingInfo* setting = domain::FindSetting(option->get_lnames().front());
      const std::string& flag = option->get_lnames().front();
      const std::vector<std::string> values = flag == "order-by" ? FieldNames()
                                              : flag == "grid" || flag == "random"
                                                  ? AxisBeginnings()
                                              : setting == nullptr ? std::vector<std::string>{}
                                                                   : ValuesOf(*setting);
      script +=
          fmt::format("complete -c normlab -n '__fish_seen_subcommand_from {}' -l {}{}{} -d {}\n",
                      command->get_name(), option->get_lnames().front(),
                      option->get_items_expected_max() > 0 ? " -r" : "",
                      values.empty() ? "" : fmt::format(" -a '{}'", Words(values)),
                      FishQuoted(option->get_description()));
    }
  }
  return script;
}

}  // namespace

void AddCompletion(CLI::App& program, Context& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand("completion", "Print a shell's completion script");
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      "Examples:\n  source <(normlab completion bash)\n"
      "  normlab completion fish > ~/.config/fish/completions/normlab.fish");
  command->callback([&context, &program, shell] {
    context.terminal.Write(*shell == "bash"  ? Bash(program)
                           : *shell == "zsh" ? Zsh(program)
                                             : Fish(program));
  });
}

}  // namespace normlab::client
