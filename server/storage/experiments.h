// Experiments as rows. Functions run inside the caller's transaction.
#ifndef NORMLAB_SERVER_STORAGE_EXPERIMENTS_H_
#define NORMLAB_SERVER_STORAGE_EXPERIMENTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "normlab/v1/experiment_service.pb.h"
#include "server/storage/sqlite.h"
#include "server/storage/writer.h"

namespace normlab::storage {

class Store;

// On the writer's thread.
absl::Status InsertExperiment(WriteContext& context, const v1::Experiment& experiment);

// Without its runs. NOT_FOUND when there is no such experiment.
absl::StatusOr<v1::Experiment> ReadExperiment(Database& database, std::string_view id);

// With its runs, oldest first: a page after the other, each in a transaction of its own, because
// there may be ten thousand and no reader may hold one for long. So they need not be of one moment.
absl::StatusOr<v1::Experiment> ReadWholeExperiment(Store& store, std::string_view id);

// Ids of its runs, oldest first, at most `limit`.
absl::StatusOr<std::vector<std::string>> ReadRunIds(Database& database, std::string_view experiment,
                                                    int limit);

// Without their runs, newest first; only ids below `before`, unless that is empty.
absl::StatusOr<std::vector<v1::Experiment>> ReadExperiments(Database& database,
                                                            std::string_view before, int limit);

// Name of the user who made it. NOT_FOUND when there is no such experiment.
absl::StatusOr<std::string> ReadExperimentUser(Database& database, std::string_view id);

// A run of an experiment that has not ended.
struct UnendedRun {
  std::string id;
  std::string user;
  v1::Run::State state;
};
// Newest first.
absl::StatusOr<std::vector<UnendedRun>> ReadUnendedRuns(Database& database,
                                                        std::string_view experiment);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_EXPERIMENTS_H_
