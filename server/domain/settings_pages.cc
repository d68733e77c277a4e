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

// What a spec may hold for this setting, as JSON Schema. "auto" is a choice like any other for a
// text; a number is left out instead.
nlohmann::ordered_json PropertySchema(const SettingInfo& setting) {
  nlohmann::ordered_json json;
  json["description"] = setting.help;
  switch (setting.type) {
    case SettingType::kSwitch:
      json["type"] = "boolean";
      break;
    case SettingType::kInteger:
      json["type"] = "integer";
      break;
    case SettingType::kNumber:
      json["type"] = "number";
      break;
    case SettingType::kText: {
      json["type"] = "string";
      if (setting.choices.empty()) break;
      const nlohmann::ordered_json choices = {{"enum", setting.choices}};
      if (setting.choice_prefix.empty()) {
        json.update(choices);
      } else {
        const std::string pattern = "^" + setting.choice_prefix + ".+";
        json["anyOf"] = nlohmann::ordered_json::array({choices, {{"pattern", pattern}}});
      }
      break;
    }
  }
  if (setting.minimum) {
    json[setting.exclusive_minimum ? "exclusiveMinimum" : "minimum"] = *setting.minimum;
  }
  if (setting.maximum) {
    json[setting.exclusive_maximum ? "exclusiveMaximum" : "maximum"] = *setting.maximum;
  }
  return json;
}

// JSON Schema (2020-12) of a spec in the API's own spelling.
nlohmann::ordered_json SpecSchema() {
  nlohmann::ordered_json properties = nlohmann::ordered_json::object();
  for (const SettingInfo& setting : Settings()) {
    properties[setting.json_name] = PropertySchema(setting);
  }
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"title", "RunSpec"},
          {"type", "object"},
          {"additionalProperties", false},
          {"properties", properties}};
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
  return nlohmann::ordered_json{{"settings", list}, {"schema", SpecSchema()}}.dump();
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
