#include "client/settings_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/term/text.h"
#include "server/domain/settings.h"

namespace normlab::client {
namespace {

using domain::SettingInfo;

// "12 blocks", "auto: 4 x d_model".
std::string DefaultText(const SettingInfo& setting) {
  if (setting.HasAuto()) return "auto: " + setting.auto_help;
  return setting.unit.empty() ? setting.default_text
                              : fmt::format("{} {}", setting.default_text, setting.unit);
}

void PrintSetting(const SettingInfo& setting, Terminal& terminal) {
  const Style& style = terminal.style();
  terminal.Print(fmt::format("  {} {}", style.Bold(Pad(FlagName(setting.name), 24)), setting.help));
  terminal.Print(fmt::format(
      "  {} {}", std::string(24, ' '),
      style.Dim(fmt::format("default {}; {}", DefaultText(setting), AcceptedText(setting)))));
}

}  // namespace

std::string FlagName(const std::string& setting) {
  std::string flag = "--" + setting;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

void SettingsFlags::AddTo(CLI::App& command) {
  for (const SettingInfo& setting : domain::Settings()) {
    std::string names = FlagName(setting.name);
    if (setting.name.find('_') != std::string::npos) names += ",--" + setting.name;
    options_[setting.name] =
        command.add_option(names, given_[setting.name], setting.help)->group("");
  }
  command.add_option("--set", assignments_, "Set any setting; repeatable")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
  command.add_flag("--help-settings", help_, "Show all settings (--layers, --learning-rate, …)");
  command.add_flag("--markdown", markdown_)->group("");
}

absl::Status SettingsFlags::Apply(normlab::v1::RunSpec& spec) const {
  for (const auto& [name, text] : given_) {
    if (options_.at(name)->count() == 0) continue;
    if (absl::Status status = domain::SetFromText(spec, name, text); !status.ok()) return status;
  }
  for (const std::string& assignment : assignments_) {
    const size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(
          fmt::format("--set needs KEY=VALUE, not \"{}\"", Clean(assignment)));
    }
    absl::Status status =
        domain::SetFromText(spec, assignment.substr(0, equals), assignment.substr(equals + 1));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void SettingsFlags::PrintHelp(Terminal& terminal, bool json) const {
  if (json) {
    terminal.Print(domain::SettingsToJson());
    return;
  }
  if (markdown_) {
    terminal.Write(domain::SettingsToMarkdown());
    return;
  }
  terminal.Print("Settings of a run. Each is a flag (--learning-rate 2e-3) and a key for --set.");
  for (const std::string& group : domain::SettingGroups()) {
    terminal.Print("\n" + terminal.style().Bold(group));
    for (const SettingInfo& setting : domain::Settings()) {
      if (setting.group == group) PrintSetting(setting, terminal);
    }
  }
}

}  // namespace normlab::client
