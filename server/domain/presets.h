// The experiments that the server can make by name. A preset is data: its runs are ordinary specs.
#ifndef NORMLAB_SERVER_DOMAIN_PRESETS_H_
#define NORMLAB_SERVER_DOMAIN_PRESETS_H_

#include <string>
#include <string_view>
#include <vector>

#include "normlab/v1/experiment_service.pb.h"
#include "server/domain/violations.h"

namespace normlab::domain {

// In the order in which people should meet them. Names of runs may have places for settings, such
// as {warmup_steps}: FillName fills them.
const std::vector<v1::Preset>& Presets();

// A run's name with the settings that it is trained with.
std::string FillName(const std::string& name, const v1::RunSpec& effective);

// As people see them: names filled with each preset's own settings.
v1::ListPresetsResponse ListPresets();

// Settings that cannot be overridden because the preset's table compares their values.
std::vector<FieldViolation> CheckOverrides(const v1::Preset& preset, const v1::RunSpec& overrides);

// Null when there is none of that name.
const v1::Preset* FindPreset(std::string_view name);

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_PRESETS_H_
