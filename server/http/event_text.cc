#include "server/http/event_text.h"

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "server/http/errors.h"
#include "server/http/json_body.h"
#include "server/http/points_json.h"

namespace normlab::http {
namespace {

// JSON here has no line breaks, so that one `data:` line holds it.
std::string Lines(std::string_view name, std::string_view json) {
  return fmt::format("event: {}\ndata: {}\n", name, json);
}

}  // namespace

std::string EventText(const v1::WatchRunsResponse& event) {
  switch (event.event_case()) {
    case v1::WatchRunsResponse::kRun:
      return Lines("run", ToJson(event.run()));
    case v1::WatchRunsResponse::kAttempt:
      return Lines("attempt", ToJson(event.attempt()));
    case v1::WatchRunsResponse::kPoints:
      return Lines("points", PointsJson(event.points()));
    case v1::WatchRunsResponse::kProgress:
      return Lines("progress", ToJson(event.progress()));
    case v1::WatchRunsResponse::kGap:
      return Lines("gap", ToJson(event.gap()));
    case v1::WatchRunsResponse::kEnd:
      return Lines("end", ToJson(event.end()));
    case v1::WatchRunsResponse::kDeleted:
      return Lines("deleted", ToJson(event.deleted()));
    case v1::WatchRunsResponse::kNotice:
      return Lines("notice", ToJson(event.notice()));
    case v1::WatchRunsResponse::kHeartbeat:
    case v1::WatchRunsResponse::EVENT_NOT_SET:
      break;
  }
  return Lines("heartbeat", "{}");
}

std::string_view HeartbeatFrame() { return "event: heartbeat\ndata: {}\n\n"; }

std::string ErrorFrame(const absl::Status& status) {
  return Lines("error", ErrorJson(HttpStatus(status.code()), status)) + "\n";
}

}  // namespace normlab::http
