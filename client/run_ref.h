// RUN on the command line: any unique prefix of a run's id, or its name.
#ifndef NORMLAB_CLIENT_RUN_REF_H_
#define NORMLAB_CLIENT_RUN_REF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/api_client.h"
#include "normlab/v1/run.pb.h"
#include "normlab/v1/run_service.pb.h"

namespace normlab::client {

// The run that `text` stands for: its whole id, else its name, else a prefix of its id. NOT_FOUND
// when there is none; FAILED_PRECONDITION with the candidates when there are several.
absl::StatusOr<normlab::v1::Run> ResolveRun(ApiClient& client, const std::string& text);

// All of them, or the first error.
absl::StatusOr<std::vector<normlab::v1::Run>> ResolveRuns(ApiClient& client,
                                                          const std::vector<std::string>& texts);

// Up to `limit` runs, newest first, over as many pages as it takes; 0 means all.
absl::StatusOr<std::vector<normlab::v1::Run>> ListAllRuns(ApiClient& client,
                                                          normlab::v1::ListRunsRequest request,
                                                          int limit);

// Enough characters of each id to tell it from the others: at least ten, which are its time.
std::vector<std::string> ShortIds(const std::vector<normlab::v1::Run>& runs);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_RUN_REF_H_
