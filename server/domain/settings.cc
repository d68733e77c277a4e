#include "server/domain/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <system_error>

#include "google/protobuf/descriptor.h"
#include "normlab/v1/setting.pb.h"
#include "server/domain/nearest.h"
#include "server/domain/utf8.h"

namespace normlab::domain {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;
using normlab::v1::RunSpec;

SettingType TypeOf(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return SettingType::kInteger;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return SettingType::kNumber;
    case FieldDescriptor::CPPTYPE_BOOL:
      return SettingType::kSwitch;
    default:
      return SettingType::kText;
  }
}

SettingInfo InfoOf(const FieldDescriptor& field) {
  const normlab::v1::Setting& declared = field.options().GetExtension(normlab::v1::setting);
  SettingInfo info;
  info.name = field.name();
  info.json_name = field.json_name();
  info.field_number = field.number();
  info.type = TypeOf(field);
  info.group = declared.group();
  info.help = declared.help();
  info.default_text = declared.default_value();
  info.auto_help = declared.auto_help();
  info.choices.assign(declared.choices().begin(), declared.choices().end());
  if (declared.has_minimum()) info.minimum = declared.minimum();
  if (declared.has_maximum()) info.maximum = declared.maximum();
  info.exclusive_minimum = declared.exclusive_minimum();
  info.exclusive_maximum = declared.exclusive_maximum();
  info.unit = declared.unit();
  info.choice_prefix = declared.choice_prefix();
  info.needs = declared.needs();
  info.server_only = declared.server_only();
  return info;
}

const FieldDescriptor* FieldOf(const SettingInfo& setting) {
  return RunSpec::descriptor()->FindFieldByNumber(setting.field_number);
}

// Shortest text that reads back as the same double, without the "e+" that people do not write.
std::string NumberText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, end);
  if (const size_t plus = text.find("e+"); plus != std::string::npos) text.erase(plus + 1, 1);
  return text;
}

// A bound of the declaration: whole numbers are written out, 1e12 is easier to read than its zeros.
std::string BoundText(double value) {
  const bool whole = std::floor(value) == value && std::abs(value) < 1e16;
  const bool round = whole && value != 0 && std::fmod(value, 1e9) == 0;
  return whole && !round ? std::to_string(static_cast<int64_t>(value)) : NumberText(value);
}

std::string RangeText(const SettingInfo& setting) {
  const std::string low = setting.minimum ? BoundText(*setting.minimum) : "";
  const std::string high = setting.maximum ? BoundText(*setting.maximum) : "";
  if (setting.minimum && setting.maximum && !setting.exclusive_minimum &&
      !setting.exclusive_maximum) {
    return low + " to " + high;
  }
  std::vector<std::string> parts;
  if (setting.minimum) {
    parts.push_back(setting.exclusive_minimum ? "above " + low : "at least " + low);
  }
  if (setting.maximum) {
    parts.push_back(setting.exclusive_maximum ? "below " + high : "at most " + high);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// "" when the value is in range; else what is wrong, to follow "VALUE ".
std::string RangeFault(const SettingInfo& setting, double value) {
  if (!std::isfinite(value)) return "is not a finite number";
  const bool too_small = setting.minimum && (setting.exclusive_minimum ? value <= *setting.minimum
                                                                       : value < *setting.minimum);
  const bool too_large = setting.maximum && (setting.exclusive_maximum ? value >= *setting.maximum
                                                                       : value > *setting.maximum);
  if (too_small) return "is too small";
  if (too_large) return "is too large";
  return "";
}

// What is wrong with a field that is set, in one sentence; "" when nothing is.
std::string FaultOf(const RunSpec& spec, const SettingInfo& setting) {
  const FieldDescriptor* field = FieldOf(setting);
  const Reflection* reflection = spec.GetReflection();
  std::string fault;
  switch (setting.type) {
    case SettingType::kSwitch:
      return "";
    case SettingType::kInteger:
      fault = RangeFault(setting, static_cast<double>(reflection->GetInt64(spec, field)));
      break;
    case SettingType::kNumber:
      fault = RangeFault(setting, reflection->GetDouble(spec, field));
      break;
    case SettingType::kText: {
      const std::string value = reflection->GetString(spec, field);
      if (!IsUtf8(value)) return "is not UTF-8 text";
      const auto& choices = setting.choices;
      if (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end()) {
        return "";
      }
      const std::string& prefix = setting.choice_prefix;
      if (!prefix.empty() && value.starts_with(prefix) && value.size() > prefix.size()) return "";
      return fmt::format("\"{}\" is not a choice; use {}", value, AcceptedText(setting));
    }
  }
  if (fault.empty()) return "";
  return fmt::format("{} {}; use {}", ValueText(spec, setting.name), fault, AcceptedText(setting));
}

absl::Status WrongText(const SettingInfo& setting, std::string_view text, std::string_view fault) {
  return absl::InvalidArgumentError(fmt::format("{}: \"{}\" {}", setting.name, text, fault));
}

std::string ArticleAndType(const SettingInfo& setting) {
  const std::string or_auto = setting.HasAuto() ? " or auto" : "";
  return setting.type == SettingType::kInteger ? "an integer" + or_auto : "a number" + or_auto;
}

// std::from_chars, whole text; a leading '+' is allowed because people write 1e+3 and +1.
template <typename T>
std::errc ParseWhole(std::string_view text, T& value) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return error;
  return end == text.data() + text.size() ? std::errc() : std::errc::invalid_argument;
}

std::optional<bool> ParseSwitch(std::string_view text) {
  const std::string lower = Underscored(text);
  for (const char* yes : {"true", "on", "yes", "1"}) {
    if (lower == yes) return true;
  }
  for (const char* no : {"false", "off", "no", "0"}) {
    if (lower == no) return false;
  }
  return std::nullopt;
}

// Whether the setting counts with these settings.
bool NeedsMet(const SettingInfo& setting, const RunSpec& effective) {
  const size_t equals = setting.needs.find('=');
  std::string value = ValueText(effective, setting.needs.substr(0, equals));
  value = value.substr(0, value.find(':'));  // text:NAME is text
  std::string_view allowed = std::string_view(setting.needs).substr(equals + 1);
  while (true) {
    const size_t bar = allowed.find('|');
    if (allowed.substr(0, bar) == value) return true;
    if (bar == std::string_view::npos) return false;
    allowed.remove_prefix(bar + 1);
  }
}

// Stores the text in the field; range and choices are checked afterwards.
absl::Status Store(RunSpec& spec, const SettingInfo& setting, std::string_view text) {
  const FieldDescriptor* field = FieldOf(setting);
  const Reflection* reflection = spec.GetReflection();
  switch (setting.type) {
    case SettingType::kText:
      reflection->SetString(&spec, field, std::string(text));
      return absl::OkStatus();
    case SettingType::kSwitch: {
      const std::optional<bool> value = ParseSwitch(text);
      if (!value) return WrongText(setting, text, "is not true or false");
      reflection->SetBool(&spec, field, *value);
      return absl::OkStatus();
    }
    case SettingType::kInteger: {
      int64_t value = 0;
      const std::errc error = ParseWhole(text, value);
      if (error == std::errc::result_out_of_range) {
        return WrongText(setting, text, "is out of range; use " + AcceptedText(setting));
      }
      if (error != std::errc()) {
        return WrongText(setting, text, "is not " + ArticleAndType(setting));
      }
      reflection->SetInt64(&spec, field, value);
      return absl::OkStatus();
    }
    case SettingType::kNumber: {
      double value = 0;
      const std::errc error = ParseWhole(text, value);
      if (error == std::errc::result_out_of_range) {
        return WrongText(setting, text, "is out of range; use " + AcceptedText(setting));
      }
      if (error != std::errc()) {
        return WrongText(setting, text, "is not " + ArticleAndType(setting));
      }
      reflection->SetDouble(&spec, field, value);
      return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view SettingTypeName(SettingType type) {
  switch (type) {
    case SettingType::kInteger:
      return "integer";
    case SettingType::kNumber:
      return "number";
    case SettingType::kSwitch:
      return "switch";
    case SettingType::kText:
      break;
  }
  return "text";
}

const std::vector<SettingInfo>& Settings() {
  static const auto* settings = [] {
    auto* list = new std::vector<SettingInfo>;
    const google::protobuf::Descriptor* spec = RunSpec::descriptor();
    for (int i = 0; i < spec->field_count(); ++i) list->push_back(InfoOf(*spec->field(i)));
    return list;
  }();
  return *settings;
}

std::vector<std::string> SettingGroups() {
  std::vector<std::string> groups;
  for (const SettingInfo& setting : Settings()) {
    if (std::find(groups.begin(), groups.end(), setting.group) == groups.end()) {
      groups.push_back(setting.group);
    }
  }
  return groups;
}

const SettingInfo* FindSetting(std::string_view name) {
  const std::string wanted = Underscored(name);
  for (const SettingInfo& setting : Settings()) {
    if (setting.name == wanted) return &setting;
  }
  return nullptr;
}

std::optional<std::string> NearestName(std::string_view name) {
  std::vector<std::string> names;
  for (const SettingInfo& setting : Settings()) names.push_back(setting.name);
  return NearestOf(name, names);
}

absl::Status SetFromText(RunSpec& spec, std::string_view name, std::string_view text) {
  const SettingInfo* setting = FindSetting(name);
  if (setting == nullptr) {
    const std::optional<std::string> nearest = NearestName(name);
    const std::string hint = nearest ? fmt::format("; did you mean {}?", *nearest) : "";
    return absl::InvalidArgumentError(fmt::format("there is no setting \"{}\"{}", name, hint));
  }
  if (setting->type != SettingType::kText && setting->HasAuto() && text == "auto") {
    spec.GetReflection()->ClearField(&spec, FieldOf(*setting));
    return absl::OkStatus();
  }
  RunSpec changed = spec;
  if (absl::Status status = Store(changed, *setting, text); !status.ok()) return status;
  if (const std::string fault = FaultOf(changed, *setting); !fault.empty()) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", setting->name, fault));
  }
  spec = changed;
  return absl::OkStatus();
}

std::string ValueText(const RunSpec& spec, std::string_view name) {
  const SettingInfo* setting = FindSetting(name);
  if (setting == nullptr) return "";
  const FieldDescriptor* field = FieldOf(*setting);
  const Reflection* reflection = spec.GetReflection();
  if (!reflection->HasField(spec, field)) return setting->default_text;
  switch (setting->type) {
    case SettingType::kInteger:
      return std::to_string(reflection->GetInt64(spec, field));
    case SettingType::kNumber:
      return NumberText(reflection->GetDouble(spec, field));
    case SettingType::kSwitch:
      return reflection->GetBool(spec, field) ? "true" : "false";
    case SettingType::kText:
      break;
  }
  return reflection->GetString(spec, field);
}

bool IsSet(const RunSpec& spec, std::string_view name) {
  const SettingInfo* setting = FindSetting(name);
  return setting != nullptr && spec.GetReflection()->HasField(spec, FieldOf(*setting));
}

void FillDefaults(RunSpec& spec) {
  for (const SettingInfo& setting : Settings()) {
    if (setting.HasAuto() || setting.default_text.empty()) continue;
    if (spec.GetReflection()->HasField(spec, FieldOf(setting))) continue;
    // A declared default that does not read back is a fault of the declaration: a test walks them.
    Store(spec, setting, setting.default_text).IgnoreError();
  }
}

std::vector<FieldViolation> CheckRanges(const RunSpec& spec) {
  std::vector<FieldViolation> violations;
  for (const SettingInfo& setting : Settings()) {
    if (!spec.GetReflection()->HasField(spec, FieldOf(setting))) continue;
    std::string fault = FaultOf(spec, setting);
    if (!fault.empty()) violations.push_back({"spec." + setting.name, std::move(fault)});
  }
  return violations;
}

std::vector<FieldViolation> CheckNeeds(const RunSpec& given, const RunSpec& effective) {
  std::vector<FieldViolation> violations;
  for (const SettingInfo& setting : Settings()) {
    if (setting.needs.empty() || !IsSet(given, setting.name)) continue;
    if (NeedsMet(setting, effective)) continue;
    violations.push_back(
        {"spec." + setting.name,
         fmt::format("counts only with {}; leave it out or change that", setting.needs)});
  }
  return violations;
}

std::string AcceptedText(const SettingInfo& setting) {
  if (setting.type == SettingType::kSwitch) return "true or false";
  if (setting.type == SettingType::kText) {
    if (setting.choices.empty()) return "any text";
    const std::string choices = fmt::format("{}", fmt::join(setting.choices, ", "));
    return setting.choice_prefix.empty()
               ? choices
               : fmt::format("{}, {}NAME", choices, setting.choice_prefix);
  }
  return RangeText(setting);
}

}  // namespace normlab::domain
