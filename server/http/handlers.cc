#include "server/http/handlers.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "server/http/json_body.h"
#include "server/http/metrics_text.h"
#include "server/http/points_json.h"
#include "server/http/text.h"

namespace normlab::http {
namespace {

template <typename Message>
absl::StatusOr<Answer> Resource(const absl::StatusOr<Message>& result) {
  if (!result.ok()) return result.status();
  return JsonAnswer(ToJson(*result));
}

// For calls that take nothing from the query.
absl::Status NoParameters(const Call& call) { return Query(call.target.parameters).Done(); }

// A body that may be absent, because the path says everything.
absl::Status OptionalBody(const Call& call, google::protobuf::Message& message) {
  return call.body.empty() ? absl::OkStatus() : FromJson(call.body, message);
}

// "RUNNING", as people write it, or "STATE_RUNNING", as JSON has it.
void AddStates(Query& query, v1::ListRunsRequest& request) {
  for (const std::string& text : query.List("states")) {
    v1::Run::State state;
    const std::string name = text.starts_with("STATE_") ? text : "STATE_" + text;
    if (v1::Run::State_Parse(name, &state) && state != v1::Run::STATE_UNSPECIFIED) {
      request.add_states(state);
    } else {
      query.Fault("states", fmt::format("\"{}\" is not a state, such as RUNNING", text));
    }
  }
}

// POST /api/v1/runs/ID:VERB, whose request has nothing but the id, or what its body says.
template <typename Request>
absl::StatusOr<Answer> ChangeRun(const Call& call,
                                 absl::StatusOr<v1::Run> (app::Api::*change)(const app::Principal&,
                                                                             const Request&)) {
  if (absl::Status status = NoParameters(call); !status.ok()) return status;
  Request request;
  if (absl::Status status = OptionalBody(call, request); !status.ok()) return status;
  request.set_id(std::string(call.id));
  return Resource((call.api.*change)(call.who, request));
}

}  // namespace

absl::StatusOr<Answer> Health(const Call& call) {
  const std::vector<std::string> problems = call.api.Problems();
  nlohmann::ordered_json health = {{"status", problems.empty() ? "ok" : "degraded"}};
  if (!problems.empty()) health["problems"] = problems;
  // Texts of the system may be in any encoding.
  return JsonAnswer(health.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

absl::StatusOr<Answer> Metrics(const Call& call) {
  Answer answer;
  answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
  answer.body = MetricsText(call.api.Metrics());
  return answer;
}

absl::StatusOr<Answer> ListRuns(const Call& call) {
  v1::ListRunsRequest request;
  Query query(call.target.parameters);
  request.set_experiment(query.Text("experiment"));
  AddStates(query, request);
  request.set_page_size(query.Int32("page_size"));
  request.set_page_token(query.Text("page_token"));
  request.set_filter(query.Text("filter"));
  request.set_order_by(query.Text("order_by"));
  if (absl::Status status = query.Done(); !status.ok()) return status;
  return Resource(call.api.ListRuns(call.who, request));
}

absl::StatusOr<Answer> CreateRun(const Call& call) {
  v1::CreateRunRequest request;
  Query query(call.target.parameters);
  request.set_validate_only(query.Bool("validate_only"));
  if (absl::Status status = query.Done(); !status.ok()) return status;
  absl::Status status = FromJson(call.body, *request.mutable_run());
  if (!status.ok()) return status;
  return Resource(call.api.CreateRun(call.who, request));
}

absl::StatusOr<Answer> GetRun(const Call& call) {
  if (absl::Status status = NoParameters(call); !status.ok()) return status;
  v1::GetRunRequest request;
  request.set_id(std::string(call.id));
  return Resource(call.api.GetRun(call.who, request));
}

// The body is the run, with what is to change: each field that is there, or those of update_mask.
absl::StatusOr<Answer> UpdateRun(const Call& call) {
  Query query(call.target.parameters);
  const std::vector<std::string> mask = query.List("update_mask");
  if (absl::Status status = query.Done(); !status.ok()) return status;
  absl::StatusOr<nlohmann::json> body = ParseObject(call.body);
  if (!body.ok()) return body.status();
  v1::UpdateRunRequest request;
  if (absl::Status status = FillFromJson(*body, "", *request.mutable_run()); !status.ok()) {
    return status;
  }
  for (const std::string& path : mask) request.mutable_update_mask()->add_paths(SnakeCase(path));
  for (const auto& [name, value] : body->items()) {
    if (mask.empty() && name != "id") request.mutable_update_mask()->add_paths(SnakeCase(name));
  }
  request.mutable_run()->set_id(std::string(call.id));
  return Resource(call.api.UpdateRun(call.who, request));
}

absl::StatusOr<Answer> DeleteRun(const Call& call) {
  if (absl::Status status = NoParameters(call); !status.ok()) return status;
  v1::DeleteRunRequest request;
  request.set_id(std::string(call.id));
  if (absl::Status status = call.api.DeleteRun(call.who, request); !status.ok()) return status;
  return JsonAnswer("{}");
}

absl::StatusOr<Answer> PruneRuns(const Call& call) {
  if (absl::Status status = NoParameters(call); !status.ok()) return status;
  v1::PruneRunsRequest request;
  if (absl::Status status = FromJson(call.body, request); !status.ok()) return status;
  return Resource(call.api.PruneRuns(call.who, request));
}

absl::StatusOr<Answer> HoldRun(const Call& call) { return ChangeRun(call, &app::Api::HoldRun); }

absl::StatusOr<Answer> ReleaseRun(const Call& call) {
  return ChangeRun(call, &app::Api::ReleaseRun);
}

absl::StatusOr<Answer> MoveRun(const Call& call) { return ChangeRun(call, &app::Api::MoveRun); }

absl::StatusOr<Answer> CancelRun(const Call& call) { return ChangeRun(call, &app::Api::CancelRun); }

absl::StatusOr<Answer> PauseRun(const Call& call) { return ChangeRun(call, &app::Api::PauseRun); }

absl::StatusOr<Answer> ResumeRun(const Call& call) { return ChangeRun(call, &app::Api::ResumeRun); }

absl::StatusOr<Answer> RetryRun(const Call& call) { return ChangeRun(call, &app::Api::RetryRun); }

absl::StatusOr<Answer> ProbeRun(const Call& call) { return ChangeRun(call, &app::Api::ProbeRun); }

absl::StatusOr<Answer> ReadSeries(const Call& call) {
  v1::ReadSeriesRequest request;
  request.set_run(std::string(call.id));
  Query query(call.target.parameters);
  for (std::string& name : query.List("names")) request.add_names(std::move(name));
  request.set_from_step(query.Int64("from"));
  request.set_to_step(query.Int64("to"));
  request.set_max_points(query.Int32("max_points"));
  request.set_attempt(query.Int32("attempt"));
  if (absl::Status status = query.Done(); !status.ok()) return status;
  const absl::StatusOr<v1::ReadSeriesResponse> series = call.api.ReadSeries(call.who, request);
  if (!series.ok()) return series.status();
  return JsonAnswer(SeriesJson(*series));
}

absl::StatusOr<Answer> ReadLog(const Call& call) {
  v1::ReadLogRequest request;
  request.set_run(std::string(call.id));
  Query query(call.target.parameters);
  request.set_attempt(query.Int32("attempt"));
  request.set_offset(query.Int64("offset"));
  request.set_max_bytes(query.Int32("max_bytes"));
  if (absl::Status status = query.Done(); !status.ok()) return status;
  return Resource(call.api.ReadLog(call.who, request));
}

absl::StatusOr<Answer> ListExperiments(const Call& call) {
  v1::ListExperimentsRequest request;
  Query query(call.target.parameters);
  request.set_page_size(query.Int32("page_size"));
  request.set_page_token(query.Text("page_token"));
  if (absl::Status status = query.Done(); !status.ok()) return status;
  return Resource(call.api.ListExperiments(call.who, request));
}

// The body is the experiment, with more fields that are the request's: overrides, device and what
// all runs are to have of the queue.
absl::StatusOr<Answer> CreateExperiment(const Call& call) {
  Query query(call.target.parameters);
  const bool validate_only = query.Bool("validate_only");
  if (absl::Status parameters = query.Done(); !parameters.ok()) return parameters;
  absl::StatusOr<nlohmann::json> body = ParseObject(call.body);
  if (!body.ok()) return body.status();
  nlohmann::json own = nlohmann::json::object();
  for (const char* name : {"overrides", "device", "priority", "held", "after", "resources"}) {
    const auto field = body->find(name);
    if (field == body->end()) continue;
    own[name] = std::move(*field);
    body->erase(field);
  }
  v1::CreateExperimentRequest request;
  absl::Status status = FillFromJson(*body, "", *request.mutable_experiment());
  if (!status.ok()) return status;
  // Parsed by themselves, because filling a message starts it afresh.
  v1::CreateExperimentRequest rest;
  status = FillFromJson(own, "", rest);
  if (!status.ok()) return status;
  request.MergeFrom(rest);
  request.set_validate_only(validate_only);
  return Resource(call.api.CreateExperiment(call.who, request));
}

absl::StatusOr<Answer> GetExperiment(const Call& call) {
  if (absl::Status status = NoParameters(call); !status.ok()) return status;
  v1::GetExperimentRequest request;
  request.set_id(std::string(call.id));
  return Resource(call.api.GetExperiment(call.who, request));
}

absl::StatusOr<Answer> CancelExperiment(const Call& call) {
  if (absl::Status status = NoParameters(call); !status.ok()) return status;
  v1::CancelExperimentRequest request;
  if (absl::Status status = OptionalBody(call, request); !status.ok()) return status;
  request.set_id(std::string(call.id));
  return Resource(call.api.CancelExperiment(call.who, request));
}

absl::StatusOr<Answer> ListPresets(const Call& call) {
  if (absl::Status status = NoParameters(call); !status.ok()) return status;
  return Resource(call.api.ListPresets(call.who));
}

absl::StatusOr<Answer> ListDevices(const Call& call) {
  if (absl::Status status = NoParameters(call); !status.ok()) return status;
  return Resource(call.api.ListDevices(call.who));
}

absl::StatusOr<Answer> GetQueue(const Call& call) {
  v1::GetQueueRequest request;
  Query query(call.target.parameters);
  request.set_page_size(query.Int32("page_size"));
  if (absl::Status status = query.Done(); !status.ok()) return status;
  return Resource(call.api.GetQueue(call.who, request));
}

// The id is in the body: those of devices have colons, like verbs in paths.
absl::StatusOr<Answer> UpdateDevice(const Call& call) {
  if (absl::Status status = NoParameters(call); !status.ok()) return status;
  v1::UpdateDeviceRequest request;
  if (absl::Status status = FromJson(call.body, request); !status.ok()) return status;
  return Resource(call.api.UpdateDevice(call.who, request));
}

absl::StatusOr<Answer> GetStorage(const Call& call) {
  if (absl::Status status = NoParameters(call); !status.ok()) return status;
  return Resource(call.api.GetStorage(call.who));
}

absl::StatusOr<Answer> Settings(const Call& call) {
  if (absl::Status status = NoParameters(call); !status.ok()) return status;
  if (!call.options.settings_json) return absl::UnimplementedError("no settings are declared");
  return JsonAnswer(call.options.settings_json());
}

absl::StatusOr<Answer> ListUsers(const Call& call) {
  v1::ListUsersRequest request;
  Query query(call.target.parameters);
  request.set_show_removed(query.Bool("show_removed"));
  if (absl::Status status = query.Done(); !status.ok()) return status;
  return Resource(call.api.ListUsers(call.who, request));
}

absl::StatusOr<Answer> CreateUser(const Call& call) {
  if (absl::Status status = NoParameters(call); !status.ok()) return status;
  v1::CreateUserRequest request;
  if (absl::Status status = FromJson(call.body, *request.mutable_user()); !status.ok()) {
    return status;
  }
  return Resource(call.api.CreateUser(call.who, request));
}

// The body is the user, with what is to change: each field that is there, also within limits.
absl::StatusOr<Answer> UpdateUser(const Call& call) {
  if (absl::Status status = NoParameters(call); !status.ok()) return status;
  absl::StatusOr<nlohmann::json> body = ParseObject(call.body);
  if (!body.ok()) return body.status();
  v1::UpdateUserRequest request;
  if (absl::Status status = FillFromJson(*body, "", *request.mutable_user()); !status.ok()) {
    return status;
  }
  for (const auto& [name, value] : body->items()) {
    if (name == "limits" && value.is_object()) {
      for (const auto& [limit, number] : value.items()) {
        request.mutable_update_mask()->add_paths("limits." + SnakeCase(limit));
      }
    } else if (name != "name") {
      request.mutable_update_mask()->add_paths(SnakeCase(name));
    }
  }
  request.mutable_user()->set_name(std::string(call.id));
  return Resource(call.api.UpdateUser(call.who, request));
}

absl::StatusOr<Answer> DeleteUser(const Call& call) {
  if (absl::Status status = NoParameters(call); !status.ok()) return status;
  v1::DeleteUserRequest request;
  request.set_name(std::string(call.id));
  if (absl::Status status = call.api.DeleteUser(call.who, request); !status.ok()) return status;
  return JsonAnswer("{}");
}

absl::StatusOr<Answer> RotateToken(const Call& call) {
  if (absl::Status status = NoParameters(call); !status.ok()) return status;
  v1::RotateTokenRequest request;
  if (absl::Status status = OptionalBody(call, request); !status.ok()) return status;
  request.set_name(std::string(call.id));
  return Resource(call.api.RotateToken(call.who, request));
}

absl::StatusOr<Answer> ListAuditEvents(const Call& call) {
  v1::ListAuditEventsRequest request;
  Query query(call.target.parameters);
  request.set_run(query.Text("run"));
  request.set_user(query.Text("user"));
  request.set_page_size(query.Int32("page_size"));
  request.set_page_token(query.Text("page_token"));
  if (absl::Status status = query.Done(); !status.ok()) return status;
  return Resource(call.api.ListAuditEvents(call.who, request));
}

absl::StatusOr<Answer> GetMe(const Call& call) {
  if (absl::Status status = NoParameters(call); !status.ok()) return status;
  return Resource(call.api.GetMe(call.who));
}

absl::StatusOr<Answer> CreateLoginCode(const Call& call) {
  if (absl::Status status = NoParameters(call); !status.ok()) return status;
  v1::CreateLoginCodeRequest request;
  if (absl::Status status = OptionalBody(call, request); !status.ok()) return status;
  return Resource(call.api.CreateLoginCode(call.who));
}

absl::StatusOr<Answer> ExchangeLoginCode(const Call& call) {
  if (absl::Status status = NoParameters(call); !status.ok()) return status;
  v1::ExchangeLoginCodeRequest request;
  if (absl::Status status = FromJson(call.body, request); !status.ok()) return status;
  return Resource(call.api.ExchangeLoginCode(request, call.who.origin));
}

}  // namespace normlab::http
