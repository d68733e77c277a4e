// Specs and sweeps as the database has them: proto3 JSON.
#ifndef NORMLAB_SERVER_STORAGE_SPEC_JSON_H_
#define NORMLAB_SERVER_STORAGE_SPEC_JSON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "normlab/v1/experiment_service.pb.h"
#include "normlab/v1/run_spec.pb.h"

namespace normlab::storage {

absl::StatusOr<std::string> SpecToJson(const v1::RunSpec& spec);
absl::StatusOr<std::string> SweepToJson(const v1::Sweep& sweep);

// Both leave out what this program does not know: a newer one's settings may be in the file.
absl::Status SpecFromJson(const std::string& json, v1::RunSpec& spec);
absl::Status SweepFromJson(const std::string& json, v1::Sweep& sweep);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_SPEC_JSON_H_
