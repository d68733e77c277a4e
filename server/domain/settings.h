// The settings of a run, as RunSpec declares them: one list from which validation, the command
// line, shell completion, the web form and the documentation are made.
//
//   RunSpec spec;
//   if (absl::Status status = SetFromText(spec, "learning-rate", "2e-3"); !status.ok()) ...
//   for (const FieldViolation& wrong : CheckRanges(spec)) ...   // all of them, not the first
//   FillDefaults(spec);                                         // what does not need other
//   settings
//
// Pure functions over the descriptor: no I/O, any thread.
#ifndef NORMLAB_SERVER_DOMAIN_SETTINGS_H_
#define NORMLAB_SERVER_DOMAIN_SETTINGS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "normlab/v1/run_spec.pb.h"
#include "server/domain/violations.h"

namespace normlab::domain {

enum class SettingType { kText, kInteger, kNumber, kSwitch };

// "text", "integer", "number" or "switch": how the type is called in JSON, help and docs.
std::string_view SettingTypeName(SettingType type);

struct SettingInfo {
  std::string name;       // as declared: learning_rate
  std::string json_name;  // in JSON: learningRate
  int field_number = 0;
  SettingType type = SettingType::kText;
  std::string group;
  std::string help;
  std::string default_text;  // "auto": follows from other settings
  std::string auto_help;     // what auto becomes, in words
  std::vector<std::string> choices;
  std::optional<double> minimum;
  std::optional<double> maximum;
  bool exclusive_minimum = false;
  bool exclusive_maximum = false;
  std::string unit;
  std::string choice_prefix;  // besides the choices, any text that begins so
  bool server_only = false;   // says what the server does; trainers do not read it
  std::string needs;          // "schedule=cosine|linear": where the setting counts; empty: always

  bool HasAuto() const { return default_text == "auto"; }
};

// Every setting, in the order of RunSpec's declaration.
const std::vector<SettingInfo>& Settings();

// The groups, in the order in which help and forms show them.
std::vector<std::string> SettingGroups();

// The setting of that name, or nullptr. Dashes count as underscores.
const SettingInfo* FindSetting(std::string_view name);

// The real setting that somebody who wrote `name` most likely meant, if one is near.
std::optional<std::string> NearestName(std::string_view name);

// Reads `text` by the setting's type and stores it. "auto" on a number clears the field, so that
// it is resolved like an absent one. INVALID_ARGUMENT says what is wrong and what would be right;
// then `spec` is unchanged.
absl::Status SetFromText(normlab::v1::RunSpec& spec, std::string_view name, std::string_view text);

// The setting's value as text; when absent, its default ("auto" where that is the default). Numbers
// are the shortest text that reads back as the same value. Empty for an unknown name.
std::string ValueText(const normlab::v1::RunSpec& spec, std::string_view name);

// Whether the field is set.
bool IsSet(const normlab::v1::RunSpec& spec, std::string_view name);

// Sets every absent setting whose default is a value. Those with the default "auto" stay absent
// (and a text "auto" stays "auto"): they follow from other settings.
void FillDefaults(normlab::v1::RunSpec& spec);

// Every setting outside its range or choices. Rules between settings are not looked at here.
std::vector<FieldViolation> CheckRanges(const normlab::v1::RunSpec& spec);

// Every setting that is given in `given` though it does not count with the other settings, which
// `effective` has resolved: experts without ffn=switch.
std::vector<FieldViolation> CheckNeeds(const normlab::v1::RunSpec& given,
                                       const normlab::v1::RunSpec& effective);

// "1 to 1024", "above 0, at most 1", "pre, post", "true or false": what a setting accepts.
std::string AcceptedText(const SettingInfo& setting);

// The answer of GET /api/v1/settings: {"settings": [{"name": ..., "type": ..., ...}], "schema":
// {...}}; the schema is the JSON Schema of a spec.
std::string SettingsToJson();

// The settings page of the documentation.
std::string SettingsToMarkdown();

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_SETTINGS_H_
