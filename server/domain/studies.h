// The presets that compare several runs over seeds and end in a table with expectations.
#ifndef NORMLAB_SERVER_DOMAIN_STUDIES_H_
#define NORMLAB_SERVER_DOMAIN_STUDIES_H_

#include <vector>

#include "normlab/v1/experiment_service.pb.h"

namespace normlab::domain {

// In the order in which people should meet them.
std::vector<v1::Preset> Studies();

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_STUDIES_H_
