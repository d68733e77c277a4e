#include "server/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "absl/strings/escaping.h"
#include "server/base/strings.h"

namespace normlab {
namespace {

void Log(spdlog::level::level_enum level, std::string_view phrase, LogFields fields) {
  spdlog::logger& logger = *spdlog::default_logger_raw();
  if (!logger.should_log(level)) return;
  std::string line(phrase);
  for (const auto& [key, value] : fields) {
    const bool plain =
        !value.empty() && value.find_first_of(" \"\\=\n\r\t") == std::string::npos;
    StrAppend(&line, " ", key, "=",
                    plain ? value : StrCat("\"", absl::Utf8SafeCEscape(value), "\""));
  }
  logger.log(level, "{}", line);
}

}  // namespace

void StartLogging(std::string_view level) {
  auto logger = std::make_shared<spdlog::logger>(
      "normlab", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(std::string(level)));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void LogInfo(std::string_view phrase, LogFields fields) {
  Log(spdlog::level::info, phrase, fields);
}
void LogWarning(std::string_view phrase, LogFields fields) {
  Log(spdlog::level::warn, phrase, fields);
}
void LogError(std::string_view phrase, LogFields fields) {
  Log(spdlog::level::err, phrase, fields);
}

}  // namespace normlab
