// Sweeps as JSON: what is refused names places, and what is accepted are runs of their own.
#include <google/protobuf/util/json_util.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "server/domain/settings.h"
#include "server/domain/sweep.h"
#include "server/domain/violations.h"
#include "tests/fuzz/property.h"

namespace normlab::domain {
namespace {

constexpr int kMostRuns = 200;  // of one input: nothing else happens with more

// Counts that would only take long. The bound itself has unit tests.
void Bound(v1::Sweep& sweep) {
  if (sweep.samples() > kMostRuns) sweep.set_samples(kMostRuns);
  for (v1::SweepAxis& axis : *sweep.mutable_axes()) {
    if (axis.range().count() > kMostRuns) axis.mutable_range()->set_count(kMostRuns);
  }
  while (sweep.axes_size() > 2) sweep.mutable_axes()->RemoveLast();
}

void Check(const std::string& input) {
  v1::Sweep sweep;
  if (!google::protobuf::util::JsonStringToMessage(input, &sweep).ok()) return;
  Bound(sweep);
  const absl::StatusOr<std::vector<SweepRun>> runs = ExpandSweep(sweep);
  if (!runs.ok()) {
    REQUIRE(absl::IsInvalidArgument(runs.status()));
    const std::vector<FieldViolation> wrong = Violations(runs.status());
    REQUIRE(!wrong.empty());
    for (const FieldViolation& violation : wrong) {
      REQUIRE(violation.field.starts_with("sweep"));
      REQUIRE(!violation.description.empty());
    }
    return;
  }
  REQUIRE(!runs->empty());
  std::set<std::string> names, specs;
  for (const SweepRun& run : *runs) {
    REQUIRE(!run.name.empty());
    REQUIRE(names.insert(run.name).second);
    REQUIRE(specs.insert(run.spec.SerializeAsString()).second);
    REQUIRE(CheckRanges(run.spec).empty());
  }
  const absl::StatusOr<std::vector<SweepRun>> again = ExpandSweep(sweep);
  REQUIRE(again.ok() && again->size() == runs->size());
  REQUIRE(again->back().name == runs->back().name);
}

}  // namespace
}  // namespace normlab::domain

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  normlab::domain::Check(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
