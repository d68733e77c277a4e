// The list of settings as other programs and people read it: JSON and a page of documentation.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "server/domain/settings.h"

namespace normlab::domain {
namespace {

nlohmann::ordered_json SettingJson(const SettingInfo& setting) {
  nlohmann::ordered_json json;
  json["name"] = setting.name;
  json["type"] = std::string(SettingTypeName(setting.type));
  json["group"] = setting.group;
  json["help"] = setting.help;
  json["default"] = setting.default_text;
  if (!setting.auto_help.empty()) json["autoHelp"] = setting.auto_help;
  if (!setting.choices.empty()) json["choices"] = setting.choices;
  if (setting.minimum) json["minimum"] = *setting.minimum;
  if (setting.maximum) json["maximum"] = *setting.maximum;
  if (setting.exclusive_minimum) json["exclusiveMinimum"] = true;
  if (setting.exclusive_maximum) json["exclusiveMaximum"] = true;
  if (!setting.unit.empty()) json["unit"] = setting.unit;
  if (!setting.choice_prefix.empty()) json["choicePrefix"] = setting.choice_prefix;
  if (!setting.needs.empty()) json["needs"] = setting.needs;
  return json;
}

// Text inside a cell of a table.
std::string Cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

std::string MarkdownRow(const SettingInfo& setting) {
  std::string default_text = fmt::format("`{}`", setting.default_text);
  if (setting.HasAuto()) default_text += ": " + setting.auto_help;
  const std::string needs = setting.needs.empty() ? "" : fmt::format("`{}`", Cell(setting.needs));
  return fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", setting.name, Cell(setting.help),
                     SettingTypeName(setting.type), Cell(default_text), Cell(AcceptedText(setting)),
                     setting.unit, needs);
}

}  // namespace

std::string SettingsToJson() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const SettingInfo& setting : Settings()) list.push_back(SettingJson(setting));
  return nlohmann::ordered_json{{"settings", list}}.dump();
}

std::string SettingsToMarkdown() {
  std::string page =
      "# Settings\n\n"
      "Made from the declarations in `proto/normlab/v1/run_spec.proto` by\n"
      "`normlab submit --help-settings --markdown`; a test compares the two.\n";
  for (const std::string& group : SettingGroups()) {
    page += fmt::format(
        "\n## {}\n\n"
        "| setting | what it is | type | default | accepted | unit | only with |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n",
        group);
    for (const SettingInfo& setting : Settings()) {
      if (setting.group == group) page += MarkdownRow(setting);
    }
  }
  return page;
}

}  // namespace normlab::domain
