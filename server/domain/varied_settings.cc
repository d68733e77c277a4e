#include "server/domain/varied_settings.h"

#include <algorithm>

#include "server/domain/settings.h"

namespace normlab::domain {

std::vector<std::string> VariedSettings(const std::vector<v1::RunSpec>& specs) {
  std::vector<std::string> varied;
  for (const SettingInfo& setting : Settings()) {
    const bool same = std::ranges::all_of(specs, [&](const v1::RunSpec& spec) {
      return ValueText(spec, setting.name) == ValueText(specs.front(), setting.name);
    });
    if (!same) varied.push_back(setting.name);
  }
  return varied;
}

}  // namespace normlab::domain
