// Sweeps, a line for each part: "v NAME=A,B" values of an axis, "r NAME=MIN:MAX:COUNT" a range ("l"
// by logarithms), "b NAME=VALUE" of the base, "i NAME=VALUE" an entry of the list, "s COUNT:SEED"
// draws, "e STEP:QUANTILE" early stops. What is refused names places, and what is accepted are runs
// of their own, the same ones each time.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/domain/settings.h"
#include "server/domain/sweep.h"
#include "server/domain/utf8.h"
#include "server/domain/violations.h"
#include "tests/fuzz/property.h"

namespace {

using normlab::domain::ExpandSweep;
using normlab::domain::FieldViolation;
using normlab::domain::SweepRun;
using normlab::fuzz::Input;

// More only takes longer; the bounds themselves have unit tests.
constexpr int kMostNumbers = 60, kMostAxes = 2;

std::string_view TakeTo(std::string_view& text, char end) {
  const size_t at = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(std::min(text.size(), at + 1));
  return taken;
}

double Number(std::string_view text) { return std::strtod(std::string(text).c_str(), nullptr); }

int32_t Count(std::string_view text) {
  const double number = Number(text);
  return number > -kMostNumbers && number < kMostNumbers ? static_cast<int32_t>(number)
                                                         : kMostNumbers;
}

void AddAxis(char kind, std::string_view rest, normlab::v1::Sweep& sweep) {
  if (sweep.axes_size() == kMostAxes) return;
  normlab::v1::SweepAxis& axis = *sweep.add_axes();
  axis.set_setting(std::string(TakeTo(rest, '=')));
  while (kind == 'v' && !rest.empty() && axis.values_size() < kMostNumbers) {
    axis.add_values(std::string(TakeTo(rest, ',')));
  }
  if (kind == 'v') return;
  axis.mutable_range()->set_minimum(Number(TakeTo(rest, ':')));
  axis.mutable_range()->set_maximum(Number(TakeTo(rest, ':')));
  axis.mutable_range()->set_count(Count(rest));
  axis.mutable_range()->set_logarithmic(kind == 'l');
}

void AddLine(std::string_view line, normlab::v1::Sweep& sweep) {
  // What is not UTF-8 never gets here: no message has it.
  if (line.size() < 2 || !normlab::domain::IsUtf8(line)) return;
  const char kind = line[0];
  std::string_view rest = line.substr(2);
  if (kind == 'v' || kind == 'r' || kind == 'l') AddAxis(kind, rest, sweep);
  if (kind == 'b' || (kind == 'i' && sweep.list_size() < kMostNumbers)) {
    const std::string_view name = TakeTo(rest, '=');
    normlab::v1::RunSpec& spec = kind == 'b' ? *sweep.mutable_base() : *sweep.add_list();
    normlab::fuzz::RequireClientError(normlab::domain::SetFromText(spec, name, rest));
  }
  if (kind == 's') {
    sweep.set_samples(Count(TakeTo(rest, ':')));
    sweep.set_sample_seed(rest.size());
  }
  if (kind == 'e') {
    sweep.mutable_early_stop()->add_steps(Count(TakeTo(rest, ':')));
    sweep.mutable_early_stop()->set_quantile(Number(rest));
  }
}

void CheckRefusal(const absl::Status& status) {
  REQUIRE(absl::IsInvalidArgument(status));
  const std::vector<FieldViolation> wrong = normlab::domain::Violations(status);
  REQUIRE(!wrong.empty());
  for (const FieldViolation& violation : wrong) {
    REQUIRE(violation.field.starts_with("sweep"));
    REQUIRE(!violation.description.empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  normlab::v1::Sweep sweep;
  while (!input.empty()) AddLine(input.Line(), sweep);
  const absl::StatusOr<std::vector<SweepRun>> runs = ExpandSweep(sweep);
  if (!runs.ok()) {
    CheckRefusal(runs.status());
    return 0;
  }
  REQUIRE(!runs->empty());
  std::set<std::string> names, specs;
  for (const SweepRun& run : *runs) {
    REQUIRE(names.insert(run.name).second);
    REQUIRE(specs.insert(run.spec.SerializeAsString()).second);
    REQUIRE(normlab::domain::CheckRanges(run.spec).empty());
  }
  const absl::StatusOr<std::vector<SweepRun>> again = ExpandSweep(sweep);
  REQUIRE(again.ok() && again->size() == runs->size());
  REQUIRE(again->back().name == runs->back().name);
  return 0;
}
