// An experiment on the command line: any unique prefix of its id, or its name.
#ifndef NORMLAB_CLIENT_EXPERIMENT_REF_H_
#define NORMLAB_CLIENT_EXPERIMENT_REF_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/api_client.h"

namespace normlab::client {

// Id of the experiment that `text` stands for: its name, else a prefix of its id. NOT_FOUND when
// there is none; FAILED_PRECONDITION with the candidates when there are several.
absl::StatusOr<std::string> ResolveExperiment(ApiClient& client, const std::string& text);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_EXPERIMENT_REF_H_
