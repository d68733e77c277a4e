// Settings as the command line gives them, NAME=VALUE: what is taken prints as a text that is taken
// again for the same, and a spec that passes all checks has an effective spec that is whole.
#include <cmath>
#include <cstdint>
#include <string>

#include "server/domain/model_size.h"
#include "server/domain/settings.h"
#include "server/domain/spec.h"
#include "tests/fuzz/property.h"

namespace {

using normlab::fuzz::Input;
using normlab::v1::RunSpec;

// Bit for bit, so that NaN is like NaN.
bool Same(const RunSpec& a, const RunSpec& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

void SetOne(RunSpec& spec, std::string_view name, std::string_view value) {
  const RunSpec before = spec;
  const absl::Status status = normlab::domain::SetFromText(spec, name, value);
  normlab::fuzz::RequireClientError(status);
  if (!status.ok()) {
    REQUIRE(Same(spec, before));
    return;
  }
  RunSpec again = before;
  const std::string text = normlab::domain::ValueText(spec, name);
  REQUIRE(normlab::domain::SetFromText(again, name, text).ok());
  REQUIRE(Same(again, spec));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  RunSpec spec;
  while (!input.empty()) {
    const std::string_view line = input.Line();
    const size_t equals = std::min(line.find('='), line.size());
    SetOne(spec, line.substr(0, equals), line.substr(std::min(line.size(), equals + 1)));
  }
  if (!normlab::domain::CheckSpec(spec, {64, int64_t{1} << 40}).empty()) return 0;
  const RunSpec effective = normlab::domain::EffectiveSpec(spec);
  for (const normlab::domain::SettingInfo& setting : normlab::domain::Settings()) {
    REQUIRE(normlab::domain::IsSet(effective, setting.name));
    REQUIRE(normlab::domain::ValueText(effective, setting.name) != "auto");
  }
  REQUIRE(normlab::domain::CheckRanges(effective).empty());
  REQUIRE(Same(normlab::domain::EffectiveSpec(effective), effective));
  const double memory = normlab::domain::MemoryBytes(effective);
  REQUIRE(std::isfinite(memory) && memory > 0);
  return 0;
}
