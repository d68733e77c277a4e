#include "server/executor/exit_report.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "server/base/files.h"

namespace normlab::executor {
namespace {

ExitReport Lost(const std::string& detail) {
  ExitReport report;
  report.lost = true;
  report.detail = detail;
  return report;
}

// The whole number of that name, if there is one from `least` to `most`.
std::optional<int64_t> IntegerAt(const nlohmann::json& json, const char* name, int64_t least,
                                 int64_t most) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  // The library reads what is too large for int64_t as unsigned.
  if (found->is_number_unsigned() && found->get<uint64_t>() > INT64_MAX) return std::nullopt;
  const auto number = found->get<int64_t>();
  return number >= least && number <= most ? std::optional(number) : std::nullopt;
}

double SecondsAt(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number() ? std::max(0.0, found->get<double>()) : 0;
}

}  // namespace

ExitReport ReadExitReport(const std::filesystem::path& directory) {
  const absl::StatusOr<std::string> text = ReadFile(directory / "exit.json");
  if (!text.ok()) {
    return Lost("the shepherd ended without a report: it was killed, or the machine went down");
  }
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Lost("exit.json is not JSON");
  ExitReport report;
  report.exit_code = IntegerAt(json, "exit_code", 0, 255);
  report.exit_signal = IntegerAt(json, "exit_signal", 1, SIGRTMAX);
  if (report.exit_code.has_value() == report.exit_signal.has_value()) {
    return Lost("exit.json gives neither exit code nor signal, or both");
  }
  report.max_rss_bytes = IntegerAt(json, "max_rss_bytes", 0, INT64_MAX).value_or(0);
  report.cpu_seconds = SecondsAt(json, "cpu_seconds");
  if (json.contains("elapsed_seconds")) report.elapsed_seconds = SecondsAt(json, "elapsed_seconds");
  const auto killed = json.find("killed");
  if (killed != json.end() && *killed == true) {
    report.detail = "killed because it did not end when it was asked to";
  }
  return report;
}

std::optional<ProcessIdentity> ReadShepherdFile(const std::filesystem::path& directory) {
  const absl::StatusOr<std::string> text = ReadFile(directory / "shepherd.json");
  if (!text.ok()) return std::nullopt;
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const std::optional<int64_t> pid = IntegerAt(json, "pid", 1, INT32_MAX);
  if (!pid) return std::nullopt;
  ProcessIdentity identity;
  identity.pid = static_cast<pid_t>(*pid);
  identity.start_ticks =
      static_cast<uint64_t>(IntegerAt(json, "start_ticks", 0, INT64_MAX).value_or(0));
  const auto boot = json.find("boot_id");
  if (boot != json.end() && boot->is_string()) identity.boot_id = boot->get<std::string>();
  return identity;
}

}  // namespace normlab::executor
