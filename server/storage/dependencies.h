// Which runs wait for which. A condition is met or not by the state that the other run has now; a
// run that is not there any more counts as ended. Functions run inside the caller's transaction.
#ifndef NORMLAB_SERVER_STORAGE_DEPENDENCIES_H_
#define NORMLAB_SERVER_STORAGE_DEPENDENCIES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "normlab/v1/run.pb.h"
#include "server/domain/violations.h"
#include "server/storage/sqlite.h"

namespace normlab::storage {

using Dependencies = google::protobuf::RepeatedPtrField<v1::Dependency>;

// A run that keeps another one in the queue.
struct UnmetDependency {
  std::string run;
  std::string name;       // what people call it
  std::string condition;  // ok | any
};

// What each QUEUED run still waits for, by its id, in the order of the other runs' ids. Runs that
// wait for none are left out.
absl::StatusOr<std::map<std::string, std::vector<UnmetDependency>>> UnmetDependencies(
    Database& database);

// FAILED_PRECONDITION with a sentence while the run is held or waits for others.
absl::Status MayStart(Database& database, const v1::Run& run);

// What is wrong with `after` for the run `id` (empty for one that is not stored yet): unknown
// conditions, runs that are not there, that come twice, that can no longer succeed, and cycles,
// which are named. Fields are `prefix`after[0].run and the like.
absl::StatusOr<std::vector<domain::FieldViolation>> CheckDependencies(Database& database,
                                                                      const std::string& id,
                                                                      const std::string& prefix,
                                                                      const Dependencies& after);

// FAILED_PRECONDITION when a run that has ended otherwise than in success was to succeed before
// `run` starts: it could only be cancelled again.
absl::Status CheckStillPossible(Database& database, const std::string& run);

// Replaces what `run` waits for. The writer's thread.
absl::Status WriteDependencies(Database& database, const std::string& run,
                               const Dependencies& after);

// Now that `ended` has ended: ids of the QUEUED and PAUSED runs that were to start after its
// success and so never will. None when it succeeded.
absl::StatusOr<std::vector<std::string>> ReadHopeless(Database& database, const v1::Run& ended);

// "run smoke (01J9ZK…), after which it was to start, has diverged"
std::string WhyHopeless(const v1::Run& ended);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_DEPENDENCIES_H_
