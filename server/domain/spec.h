// From the settings as given to the settings as trained.
#ifndef NORMLAB_SERVER_DOMAIN_SPEC_H_
#define NORMLAB_SERVER_DOMAIN_SPEC_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "normlab/v1/run_spec.pb.h"
#include "server/domain/violations.h"

namespace normlab::domain {

// The machine's limits that a run is checked against at submit.
struct MachineLimits {
  int64_t cpu_threads = 1;   // usable by one run
  int64_t memory_bytes = 0;  // 0: unknown, not checked
};

// Everything that is wrong with `given`: single settings out of range, settings that do not fit
// together, and what this machine can never run. Empty when it is fine. Fields are "spec.NAME".
std::vector<FieldViolation> CheckSpec(const v1::RunSpec& given, const MachineLimits& limits);

// Every setting filled in, no "auto" left. `given` has passed CheckSpec.
v1::RunSpec EffectiveSpec(const v1::RunSpec& given);

// `overrides` on top of `base`: a present field replaces, an absent one leaves.
v1::RunSpec MergeSpecs(const v1::RunSpec& base, const v1::RunSpec& overrides);

// A violation of a display name (1 to 300 bytes of UTF-8 without control characters), or none.
std::vector<FieldViolation> CheckDisplayName(std::string_view field, std::string_view name);

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_SPEC_H_
