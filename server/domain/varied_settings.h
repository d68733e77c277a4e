// Which settings make the difference between specs.
#ifndef NORMLAB_SERVER_DOMAIN_VARIED_SETTINGS_H_
#define NORMLAB_SERVER_DOMAIN_VARIED_SETTINGS_H_

#include <string>
#include <vector>

#include "normlab/v1/run_spec.pb.h"

namespace normlab::domain {

// Names of the settings that do not have the same value in all of `specs`, as declared.
std::vector<std::string> VariedSettings(const std::vector<v1::RunSpec>& specs);

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_VARIED_SETTINGS_H_
