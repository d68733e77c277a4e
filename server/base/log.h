// The server's log: one line an event, UTC, `key=value` behind a fixed phrase so that it can be
// searched: 2026-01-31T12:00:00.123Z info run started run=01H... attempt=1 device=cpu:0
#ifndef NORMLAB_SERVER_BASE_LOG_H_
#define NORMLAB_SERVER_BASE_LOG_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace normlab {

// Sets up logging to standard error. `level` is trace, debug, info, warning, error or off.
void StartLogging(std::string_view level);

using LogFields = std::initializer_list<std::pair<std::string_view, std::string>>;

// Values with spaces, quotes or line breaks are quoted and escaped. Any thread.
void LogInfo(std::string_view phrase, LogFields fields = {});
void LogWarning(std::string_view phrase, LogFields fields = {});
void LogError(std::string_view phrase, LogFields fields = {});

}  // namespace normlab

#endif  // NORMLAB_SERVER_BASE_LOG_H_
