#include "server/http/routes.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/handlers.h"
#include "server/http/text.h"

namespace normlab::http {
namespace {

constexpr Route kRoutes[] = {
    {"GET", "/healthz", Health, false},
    {"GET", "/metrics", Metrics},
    {"GET", "/api/v1/runs", ListRuns},
    {"POST", "/api/v1/runs", CreateRun},
    {"GET", "/api/v1/runs/*", GetRun},
    {"PATCH", "/api/v1/runs/*", UpdateRun},
    {"DELETE", "/api/v1/runs/*", DeleteRun},
    {"POST", "/api/v1/runs:prune", PruneRuns},
    {"POST", "/api/v1/runs/*:hold", HoldRun},
    {"POST", "/api/v1/runs/*:release", ReleaseRun},
    {"POST", "/api/v1/runs/*:move", MoveRun},
    {"POST", "/api/v1/runs/*:cancel", CancelRun},
    {"POST", "/api/v1/runs/*:pause", PauseRun},
    {"POST", "/api/v1/runs/*:resume", ResumeRun},
    {"POST", "/api/v1/runs/*:retry", RetryRun},
    {"POST", "/api/v1/runs/*:probe", ProbeRun},
    {"GET", "/api/v1/runs/*/series", ReadSeries, /*needs_token=*/true, /*reads_much=*/true},
    {"GET", "/api/v1/runs/*/log", ReadLog, /*needs_token=*/true, /*reads_much=*/true},
    {"GET", "/api/v1/experiments", ListExperiments},
    {"POST", "/api/v1/experiments", CreateExperiment},
    {"GET", "/api/v1/experiments/*", GetExperiment},
    {"POST", "/api/v1/experiments/*:cancel", CancelExperiment},
    {"GET", "/api/v1/presets", ListPresets},
    {"GET", "/api/v1/devices", ListDevices},
    {"GET", "/api/v1/queue", GetQueue},
    {"PATCH", "/api/v1/devices", UpdateDevice},
    {"GET", "/api/v1/users", ListUsers},
    {"POST", "/api/v1/users", CreateUser},
    {"PATCH", "/api/v1/users/*", UpdateUser},
    {"DELETE", "/api/v1/users/*", DeleteUser},
    {"POST", "/api/v1/users/*:rotate", RotateToken},
    {"GET", "/api/v1/audit", ListAuditEvents},
    {"GET", "/api/v1/storage", GetStorage},
    {"GET", "/api/v1/settings", Settings},
    {"GET", "/api/v1/me", GetMe},
    {"POST", "/api/v1/login-codes", CreateLoginCode},
    {"POST", "/api/v1/login", ExchangeLoginCode, false},
    {"GET", "/api/v1/events", nullptr},
};

// Whether `target` has the pattern's shape; then `id` is what stood for '*'.
bool Fits(std::string_view pattern, const Target& target, std::string_view& id) {
  std::string_view verb;
  if (const size_t colon = pattern.find(':'); colon != std::string_view::npos) {
    verb = pattern.substr(colon + 1);
    pattern = pattern.substr(0, colon);
  }
  if (verb != target.verb) return false;
  const std::vector<std::string_view> parts = Split(pattern.substr(1), '/');
  if (parts.size() != target.segments.size()) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == "*" && !target.segments[i].empty()) {
      id = target.segments[i];
    } else if (parts[i] != target.segments[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace

Match FindRoute(std::string_view method, const Target& target) {
  Match match;
  std::string_view id;
  for (const Route& route : kRoutes) {
    if (!Fits(route.pattern, target, id)) continue;
    match.id = id;
    const bool has_head = route.method == "GET" && route.handler != nullptr;
    if (!match.allow.empty()) match.allow += ", ";
    match.allow += route.method;
    if (has_head) match.allow += ", HEAD";
    if (method == route.method || (method == "HEAD" && has_head)) match.route = &route;
  }
  return match;
}

absl::StatusOr<v1::WatchRunsRequest> WatchRequest(const Target& target,
                                                  std::string_view last_event_id) {
  v1::WatchRunsRequest request;
  Query query(target.parameters);
  for (std::string& run : query.List("runs")) request.add_runs(std::move(run));
  request.set_experiment(query.Text("experiment"));
  request.set_all(query.Bool("all"));
  request.set_resume_token(query.Text("resume"));
  request.set_from_step(query.Int64("from"));
  request.set_tail(query.Bool("tail"));
  if (absl::Status status = query.Done(); !status.ok()) return status;
  if (!last_event_id.empty()) request.set_resume_token(std::string(last_event_id));
  return request;
}

}  // namespace normlab::http
