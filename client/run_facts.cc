#include "client/run_facts.h"

#include <fmt/format.h>

#include <cstdint>

#include "client/term/text.h"
#include "server/domain/settings.h"

namespace normlab::client {
namespace {

using normlab::v1::Run;

void AddSetting(std::string& list, const std::string& name, const std::string& value) {
  list += fmt::format("{}{} {}", list.empty() ? "" : ", ", name, Clean(value));
}

}  // namespace

void PrintFact(Terminal& terminal, std::string_view name, const std::string& value) {
  if (value.empty()) return;
  terminal.Print(terminal.style().Dim(Pad(name, 16)) + value);
}

std::string GivenSettings(const Run& run) {
  std::string given;
  for (const domain::SettingInfo& setting : domain::Settings()) {
    const std::string value = domain::ValueText(run.spec(), setting.name);
    if (!domain::IsSet(run.spec(), setting.name) || value == setting.default_text) continue;
    AddSetting(given, setting.name, value);
  }
  return given.empty() ? "all at their defaults" : given;
}

std::string ResolvedSettings(const Run& run) {
  std::string resolved;
  for (const domain::SettingInfo& setting : domain::Settings()) {
    // What counts only with other settings is of no interest unless it was given.
    if (!setting.HasAuto() || !setting.needs.empty()) continue;
    if (domain::ValueText(run.spec(), setting.name) != "auto") continue;
    AddSetting(resolved, setting.name, domain::ValueText(run.effective_spec(), setting.name));
  }
  return resolved;
}

void PrintModelSize(const normlab::v1::Summary& summary, Terminal& terminal) {
  if (summary.has_parameter_count()) {
    PrintFact(terminal, "parameters", CountText(summary.parameter_count()));
  }
  if (summary.has_flops_per_step()) {
    PrintFact(terminal, "arithmetic",
              fmt::format("{:.3g} GFLOP a step", summary.flops_per_step() / 1e9));
  }
  if (summary.has_memory_bytes()) {
    PrintFact(terminal, "memory",
              "about " + BytesText(static_cast<int64_t>(summary.memory_bytes())));
  }
}

}  // namespace normlab::client
