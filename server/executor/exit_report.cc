#include "server/executor/exit_report.h"

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

std::optional<int> IntegerAt(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int>();
}

template <typename T>
T NumberAt(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number() ? found->get<T>() : T{};
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
  report.exit_code = IntegerAt(json, "exit_code");
  report.exit_signal = IntegerAt(json, "exit_signal");
  if (report.exit_code.has_value() == report.exit_signal.has_value()) {
    return Lost("exit.json gives neither exit code nor signal, or both");
  }
  report.max_rss_bytes = NumberAt<int64_t>(json, "max_rss_bytes");
  report.cpu_seconds = NumberAt<double>(json, "cpu_seconds");
  const auto killed = json.find("killed");
  if (killed != json.end() && *killed == true) {
    report.detail = "killed because it did not end when it was asked to";
  }
  return report;
}

}  // namespace normlab::executor
