// "Did you mean ...": the candidate that somebody who wrote `written` most likely meant.
#ifndef NORMLAB_SERVER_DOMAIN_NEAREST_H_
#define NORMLAB_SERVER_DOMAIN_NEAREST_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace normlab::domain {

// Names are compared without case and with dashes as underscores; abbreviations (lr) and parts of
// a name (batch) are near. Nothing when every candidate is too far to be a help.
std::optional<std::string> NearestOf(std::string_view written,
                                     const std::vector<std::string>& candidates);

// Lower case, dashes as underscores.
std::string Underscored(std::string_view name);

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_NEAREST_H_
