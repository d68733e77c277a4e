#include "server/domain/filter_fields.h"

#include <algorithm>
#include <optional>

#include "server/base/strings.h"
#include "server/domain/nearest.h"
#include "server/domain/settings.h"

namespace normlab::domain {
namespace {

constexpr size_t kNameShown = 64;  // bytes

FilterType TypeOf(SettingType type) {
  switch (type) {
    case SettingType::kText:
      return FilterType::kText;
    case SettingType::kSwitch:
      return FilterType::kSwitch;
    case SettingType::kInteger:
    case SettingType::kNumber:
      break;
  }
  return FilterType::kNumber;
}

std::vector<FilterField> FieldsOfRuns() {
  using enum FilterType;
  return {
      {"id", kText, "id of the run", {}},
      {"name", kText, "its name", {"display_name"}},
      {"state", kState, "queued, starting, running, ...; upper or lower case", {}},
      {"user", kText, "who submitted it", {}},
      {"experiment", kText, "id or name of its experiment; empty when it has none", {}},
      {"label", kLabels, "one of its labels", {"labels"}},
      {"notes", kText, "its notes", {}},
      {"device", kText, "where it was asked to run: auto, cpu, gpu, cpu:0", {}},
      {"created", kTime, "when it was submitted", {"create_time"}},
      {"started", kTime, "when its first attempt started", {"start_time"}},
      {"ended", kTime, "when it ended", {"end_time"}},
      {"pinned", kSwitch, "kept by every clean-up", {}},
      {"archived", kSwitch, "left out of lists unless the filter names this", {}},
      {"step", kNumber, "last step stored", {}},
      {"final_loss", kNumber, "loss of the last step stored", {"loss"}},
      {"min_loss", kNumber, "smallest finite loss", {}},
      {"validation_loss", kNumber, "latest loss on the held-out part", {}},
      {"final_gradient_norm",
       kNumber,
       "gradient norm of the last step stored, before clipping",
       {"gradient_norm"}},
      {"max_gradient_norm", kNumber, "largest gradient norm", {}},
      {"first_bad_step", kNumber, "first step whose loss or gradient norm is not finite", {}},
      {"parameters", kNumber, "trained numbers in the model", {"parameter_count"}},
      {"run_seconds", kNumber, "how long its attempts ran, without waiting and pauses", {}},
  };
}

}  // namespace

const std::vector<FilterField>& FilterFields() {
  static const auto* const kFields = [] {
    auto* fields = new std::vector<FilterField>(FieldsOfRuns());
    for (const SettingInfo& setting : Settings()) {
      fields->push_back({setting.name, TypeOf(setting.type), setting.help, {}, true});
    }
    return fields;
  }();
  return *kFields;
}

const FilterField* FindFilterField(std::string_view name) {
  const std::string wanted = Underscored(name);
  for (const FilterField& field : FilterFields()) {
    if (field.name == wanted) return &field;
    const auto& others = field.other_names;
    if (std::find(others.begin(), others.end(), wanted) != others.end()) return &field;
  }
  return nullptr;
}

std::string NoSuchField(std::string_view name) {
  if (name.size() > kNameShown) return "there is no field of so long a name";
  std::vector<std::string> names;
  for (const FilterField& field : FilterFields()) {
    names.push_back(field.name);
    names.insert(names.end(), field.other_names.begin(), field.other_names.end());
  }
  const std::optional<std::string> nearest = NearestOf(name, names);
  return StrCat("there is no field \"", name, "\"",
                nearest ? StrCat("; did you mean ", *nearest, "?") : "");
}

std::string_view FilterTypeName(FilterType type) {
  switch (type) {
    case FilterType::kText:
      return "text";
    case FilterType::kNumber:
      return "number";
    case FilterType::kTime:
      return "time";
    case FilterType::kSwitch:
      return "switch";
    case FilterType::kState:
      return "state";
    case FilterType::kLabels:
      break;
  }
  return "labels";
}

std::string FilterFieldsToMarkdown() {
  std::string table = "| field | also written | type | what it is |\n| --- | --- | --- | --- |\n";
  for (const FilterField& field : FilterFields()) {
    if (field.is_setting) continue;
    std::string others;
    for (const std::string& other : field.other_names) {
      StrAppend(&others, others.empty() ? "`" : ", `", other, "`");
    }
    StrAppend(&table, "| `", field.name, "` | ", others, " | ", FilterTypeName(field.type), " | ",
              field.help, " |\n");
  }
  return table;
}

}  // namespace normlab::domain
