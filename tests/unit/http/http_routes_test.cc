// Every route: what the api is asked, and what the client gets.
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/domain/violations.h"
#include "tests/unit/http/http_client.h"

namespace normlab::http {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::Run RunCalled(const std::string& id) {
  v1::Run run;
  run.set_id(id);
  run.set_state(v1::Run::STATE_QUEUED);
  return run;
}

class HttpRoutesTest : public HttpTest {};

TEST_F(HttpRoutesTest, CreateRun) {
  v1::CreateRunRequest seen;
  api_.create_run = [&](const v1::CreateRunRequest& request) {
    seen = request;
    return RunCalled("01J8");
  };
  const Response response =
      Fetch("POST", "/api/v1/runs", R"({"displayName":"post","spec":{"layers":6}})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.json()["id"], "01J8");
  EXPECT_EQ(response.json()["state"], "STATE_QUEUED");
  EXPECT_EQ(seen.run().display_name(), "post");
  EXPECT_EQ(seen.run().spec().layers(), 6);
  EXPECT_FALSE(seen.validate_only());
  Fetch("POST", "/api/v1/runs?validate_only=true", "{}");
  EXPECT_TRUE(seen.validate_only());
}

TEST_F(HttpRoutesTest, CreateRunRefusesUnknownFieldsByName) {
  api_.create_run = [](const v1::CreateRunRequest&) -> absl::StatusOr<v1::Run> {
    ADD_FAILURE() << "must not be asked";
    return v1::Run();
  };
  const Response response = Fetch("POST", "/api/v1/runs", R"({"spec":{"layer":6}})");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.json(), json::parse(R"({"error":{"code":400,"status":"INVALID_ARGUMENT",
              "message":"spec.layer: no such field, did you mean layers?",
              "details":[{"field":"spec.layer",
                          "description":"no such field, did you mean layers?"}]}})"));
}

TEST_F(HttpRoutesTest, ErrorsOfTheApiNameTheirFields) {
  api_.create_run = [](const v1::CreateRunRequest&) -> absl::StatusOr<v1::Run> {
    return domain::InvalidFields(
        {{"spec.heads", "5 does not divide d_model, 64"}, {"spec.layers", "0 is below 1"}});
  };
  const Response response = Fetch("POST", "/api/v1/runs", "{}");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.body,
            R"({"error":{"code":400,"status":"INVALID_ARGUMENT",)"
            R"("message":"spec.heads: 5 does not divide d_model, 64; spec.layers: 0 is below 1",)"
            R"("details":[{"field":"spec.heads","description":"5 does not divide d_model, 64"},)"
            R"({"field":"spec.layers","description":"0 is below 1"}]}})");
}

TEST_F(HttpRoutesTest, MalformedJsonIsSaidSo) {
  const Response response = Fetch("POST", "/api/v1/runs", R"({"spec":)");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("malformed JSON"));
  EXPECT_EQ(Fetch("POST", "/api/v1/runs").status, 400);
}

TEST_F(HttpRoutesTest, CanonicalCodesBecomeHttpStatuses) {
  const std::vector<std::pair<absl::Status, int>> cases = {
      {absl::NotFoundError("no run has this id"), 404},
      {absl::FailedPreconditionError("x"), 400},
      {absl::PermissionDeniedError("x"), 403},
      {absl::AlreadyExistsError("x"), 409},
      {absl::ResourceExhaustedError("x"), 429},
      {absl::CancelledError("x"), 499},
      {absl::InternalError("x"), 500},
      {absl::UnimplementedError("x"), 501},
      {absl::UnavailableError("x"), 503},
      {absl::DeadlineExceededError("x"), 504}};
  absl::Status answer;
  api_.get_run = [&](const v1::GetRunRequest&) -> absl::StatusOr<v1::Run> { return answer; };
  for (const auto& [status, code] : cases) {
    answer = status;
    const Response response = Get("/api/v1/runs/x");
    EXPECT_EQ(response.status, code) << status.ToString();
    EXPECT_EQ(response.json()["error"]["code"], code);
    EXPECT_EQ(response.json()["error"]["status"], absl::StatusCodeToString(status.code()));
  }
}

TEST_F(HttpRoutesTest, AnExceptionIsAnInternalError) {
  api_.get_run = [](const v1::GetRunRequest&) -> absl::StatusOr<v1::Run> {
    throw std::runtime_error("unforeseen");
  };
  EXPECT_EQ(Get("/api/v1/runs/x").status, 500);
  EXPECT_EQ(Get("/healthz").status, 200);
}

TEST_F(HttpRoutesTest, HealthSaysWhatIsWrongToAnybody) {
  EXPECT_EQ(Get("/healthz").body, R"({"status":"ok"})");
  api_.problems = {"the disk is full: make room", "\xFF is no text"};
  const auto degraded = Get("/healthz");
  EXPECT_EQ(degraded.status, 200) << "it lives, and must not be restarted for that";
  EXPECT_EQ(degraded.body,
            "{\"status\":\"degraded\",\"problems\":[\"the disk is full: make room\","
            "\"\xEF\xBF\xBD is no text\"]}");
}

TEST_F(HttpRoutesTest, StorageIsAResource) {
  api_.storage.set_data_directory("/srv/normlab");
  api_.storage.set_unused_bytes(4096);
  api_.storage.add_problems("the disk is full: make room");
  EXPECT_EQ(Get("/api/v1/storage").body,
            "{\"dataDirectory\":\"/srv/normlab\",\"databaseBytes\":\"0\",\"unusedBytes\":\"4096\","
            "\"logBytes\":\"0\",\"freeBytes\":\"0\",\"schema\":0,"
            "\"problems\":[\"the disk is full: make room\"],\"runs\":\"0\"}");
}

TEST_F(HttpRoutesTest, GetAndCancelRun) {
  std::string got, cancelled;
  api_.get_run = [&](const v1::GetRunRequest& request) {
    got = request.id();
    return RunCalled(got);
  };
  api_.cancel_run = [&](const v1::CancelRunRequest& request) {
    cancelled = request.id();
    return RunCalled(cancelled);
  };
  EXPECT_EQ(Get("/api/v1/runs/my%20run%2F1%3Acancel").status, 200);
  EXPECT_EQ(got, "my run/1:cancel");
  EXPECT_EQ(Fetch("POST", "/api/v1/runs/01J8:cancel").json()["id"], "01J8");
  EXPECT_EQ(cancelled, "01J8");
  EXPECT_EQ(Fetch("POST", "/api/v1/runs/01J9:cancel", "{}").status, 200);
  EXPECT_EQ(cancelled, "01J9");
  EXPECT_EQ(Fetch("POST", "/api/v1/runs/01J9:cancel", R"({"force":true})").status, 400);
}

TEST_F(HttpRoutesTest, PauseAndResumeRun) {
  std::string paused, resumed;
  api_.pause_run = [&](const v1::PauseRunRequest& request) {
    paused = request.id();
    return RunCalled(paused);
  };
  api_.resume_run = [&](const v1::ResumeRunRequest& request) -> absl::StatusOr<v1::Run> {
    resumed = request.id();
    return absl::FailedPreconditionError("run 01J9 is running, not paused");
  };
  EXPECT_EQ(Fetch("POST", "/api/v1/runs/01J8:pause").json()["id"], "01J8");
  EXPECT_EQ(paused, "01J8");
  const Response refused = Fetch("POST", "/api/v1/runs/01J9:resume", "{}");
  EXPECT_EQ(resumed, "01J9");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.json()["error"]["status"], "FAILED_PRECONDITION");
  EXPECT_EQ(refused.json()["error"]["message"], "run 01J9 is running, not paused");
  EXPECT_EQ(Get("/api/v1/runs/01J8:pause").status, 405);
}

TEST_F(HttpRoutesTest, RetryRunGoesOnOrStartsAfresh) {
  std::vector<v1::RetryRunRequest> asked;
  api_.retry_run = [&](const v1::RetryRunRequest& request) {
    asked.push_back(request);
    return RunCalled(request.id());
  };
  EXPECT_EQ(Fetch("POST", "/api/v1/runs/01J8:retry").json()["id"], "01J8");
  EXPECT_EQ(Fetch("POST", "/api/v1/runs/01J9:retry", R"({"fromStart": true})").status, 200);
  EXPECT_EQ(Fetch("POST", "/api/v1/runs/01J9:retry", R"({"fromstart": true})").status, 400);
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_FALSE(asked[0].from_start());
  EXPECT_TRUE(asked[1].from_start());
}

TEST_F(HttpRoutesTest, ProbeRun) {
  std::string probed;
  api_.probe_run = [&](const v1::ProbeRunRequest& request) {
    probed = request.id();
    return RunCalled(probed);
  };
  EXPECT_EQ(Fetch("POST", "/api/v1/runs/01J8:probe").json()["id"], "01J8");
  EXPECT_EQ(probed, "01J8");
  EXPECT_EQ(Get("/api/v1/runs/01J8:probe").status, 405);
}

TEST_F(HttpRoutesTest, ListRuns) {
  v1::ListRunsRequest seen;
  api_.list_runs = [&](const v1::ListRunsRequest& request) {
    seen = request;
    v1::ListRunsResponse response;
    *response.add_runs() = RunCalled("R");
    response.set_next_page_token("next");
    return response;
  };
  const Response response =
      Get("/api/v1/runs?experiment=E&states=RUNNING,STATE_QUEUED&page_size=5&pageToken=p");
  EXPECT_EQ(response.json()["runs"][0]["id"], "R");
  EXPECT_EQ(response.json()["nextPageToken"], "next");
  EXPECT_EQ(seen.experiment(), "E");
  EXPECT_THAT(seen.states(), ElementsAre(v1::Run::STATE_RUNNING, v1::Run::STATE_QUEUED));
  EXPECT_EQ(seen.page_size(), 5);
  EXPECT_EQ(seen.page_token(), "p");
  EXPECT_THAT(Get("/api/v1/runs?states=RUNING").body, HasSubstr("is not a state"));
  EXPECT_THAT(Get("/api/v1/runs?pagesize=5").body, HasSubstr("did you mean page_size?"));
}

TEST_F(HttpRoutesTest, ReadSeries) {
  v1::ReadSeriesRequest seen;
  api_.read_series = [&](const v1::ReadSeriesRequest& request) {
    seen = request;
    v1::ReadSeriesResponse response;
    response.set_run(request.run());
    v1::SeriesColumn& column = *response.add_columns();
    column.mutable_column()->set_name("loss");
    column.mutable_column()->add_steps(3);
    column.mutable_column()->add_values(std::numeric_limits<double>::infinity());
    column.set_total_points(1);
    return response;
  };
  const Response response =
      Get("/api/v1/runs/R/series?names=loss,gradient_norm&from=1&to=9&max_points=2000"
          "&attempt=3");
  EXPECT_EQ(response.body, R"({"run":"R","columns":{"loss":{"steps":[3],"values":["Infinity"],)"
                           R"("totalPoints":1,"nonFinitePoints":0}}})");
  EXPECT_THAT(seen.names(), ElementsAre("loss", "gradient_norm"));
  EXPECT_EQ(seen.from_step(), 1);
  EXPECT_EQ(seen.to_step(), 9);
  EXPECT_EQ(seen.max_points(), 2000);
  EXPECT_EQ(seen.attempt(), 3);
  EXPECT_EQ(Get("/api/v1/runs/R/series?max_points=many").status, 400);
}

TEST_F(HttpRoutesTest, ReadLog) {
  v1::ReadLogRequest seen;
  api_.read_log = [&](const v1::ReadLogRequest& request) {
    seen = request;
    v1::ReadLogResponse response;
    response.set_attempt(2);
    response.set_data("\xff");
    response.set_size(9);
    return response;
  };
  EXPECT_EQ(Get("/api/v1/runs/R/log?attempt=2&offset=-5&max_bytes=7").json()["data"], "/w==");
  EXPECT_EQ(seen.run(), "R");
  EXPECT_EQ(seen.attempt(), 2);
  EXPECT_EQ(seen.offset(), -5);
  EXPECT_EQ(seen.max_bytes(), 7);
  EXPECT_EQ(Get("/api/v1/runs/R/log?from=3").status, 400);
}

TEST_F(HttpRoutesTest, LongAnswersArriveWhole) {
  api_.read_series = [&](const v1::ReadSeriesRequest&) {
    v1::ReadSeriesResponse response;
    v1::Column& column = *response.add_columns()->mutable_column();
    for (int i = 0; i < 300000; ++i) {
      column.add_steps(i);
      column.add_values(i / 7.0);
    }
    return response;
  };
  const json series = Get("/api/v1/runs/R/series").json();
  EXPECT_EQ(series["columns"][""]["steps"].size(), 300000u);
  EXPECT_EQ(series["columns"][""]["values"][299999], 299999 / 7.0);
}

TEST_F(HttpRoutesTest, Experiments) {
  v1::CreateExperimentRequest created;
  api_.create_experiment = [&](const v1::CreateExperimentRequest& request) {
    created = request;
    v1::Experiment experiment;
    experiment.set_id("E");
    return experiment;
  };
  api_.get_experiment = [](const v1::GetExperimentRequest& request) {
    v1::Experiment experiment;
    experiment.set_id(request.id());
    return experiment;
  };
  api_.list_experiments = [](const v1::ListExperimentsRequest& request) {
    v1::ListExperimentsResponse response;
    response.set_next_page_token(std::to_string(request.page_size()));
    return response;
  };
  const Response response = Fetch("POST", "/api/v1/experiments",
                                  R"({"preset":"article","displayName":"mine",
                                      "overrides":{"layers":6},"device":"auto"})");
  EXPECT_EQ(response.json()["id"], "E");
  EXPECT_EQ(created.experiment().preset(), "article");
  EXPECT_EQ(created.experiment().display_name(), "mine");
  EXPECT_EQ(created.overrides().layers(), 6);
  EXPECT_EQ(created.device(), "auto");
  Fetch("POST", "/api/v1/experiments", R"({"runs":[{"spec":{"layers":1}},{"spec":{}}]})");
  EXPECT_EQ(created.experiment().runs_size(), 2);
  EXPECT_FALSE(created.has_overrides());
  EXPECT_FALSE(created.validate_only());
  Fetch("POST", "/api/v1/experiments?validate_only=true",
        R"({"sweep":{"axes":[{"setting":"seed","range":{"minimum":1,"maximum":4,"count":4}}],
                     "early_stop":{"steps":[40],"quantile":0.5}},
            "priority":"low","held":true,"after":[{"run":"R","condition":"any"}],
            "resources":{"exclusive":true}})");
  EXPECT_EQ(created.experiment().sweep().axes(0).range().count(), 4);
  EXPECT_EQ(created.experiment().sweep().early_stop().steps(0), 40);
  EXPECT_EQ(created.priority(), "low");
  EXPECT_TRUE(created.held());
  EXPECT_EQ(created.after(0).condition(), "any");
  EXPECT_TRUE(created.resources().exclusive());
  EXPECT_TRUE(created.validate_only());
  EXPECT_EQ(Get("/api/v1/experiments/E2").json()["id"], "E2");
  EXPECT_EQ(Get("/api/v1/experiments?page_size=3").json()["nextPageToken"], "3");
}

TEST_F(HttpRoutesTest, ExperimentFaultsAreNamedFromTheBody) {
  const auto field = [&](std::string_view body) {
    return Fetch("POST", "/api/v1/experiments", body).json()["error"]["details"][0]["field"];
  };
  EXPECT_EQ(field(R"({"overrides":{"layer":6}})"), "overrides.layer");
  EXPECT_EQ(field(R"({"runs":[{},{"spec":{"heads":"x"}}]})"), "runs[1].spec.heads");
  EXPECT_EQ(field(R"({"prest":"article"})"), "prest");
  EXPECT_EQ(field(R"({"device":3})"), "device");
}

TEST_F(HttpRoutesTest, PresetsDevicesAndSettings) {
  options_.settings_json = [] { return R"({"settings":[]})"; };
  v1::Preset& preset = *api_.presets.add_presets();
  preset.set_name("article");
  v1::Device& device = *api_.devices.add_devices();
  device.set_id("cpu:0");
  device.set_kind(v1::Device::KIND_CPU);
  EXPECT_EQ(Get("/api/v1/presets").json()["presets"][0]["name"], "article");
  EXPECT_EQ(Get("/api/v1/devices").json()["devices"][0]["kind"], "KIND_CPU");
  EXPECT_EQ(Get("/api/v1/settings").body, R"({"settings":[]})");
}

TEST_F(HttpRoutesTest, TheQueueIsAsLongAsAskedFor) {
  api_.get_queue = [](const v1::GetQueueRequest& request) -> absl::StatusOr<v1::Queue> {
    v1::Queue queue;
    queue.set_total_size(request.page_size());
    queue.add_entries()->set_wait_reason("held");
    return queue;
  };
  const json queue = Get("/api/v1/queue?page_size=7").json();
  EXPECT_EQ(queue["totalSize"], "7");
  EXPECT_EQ(queue["entries"][0]["waitReason"], "held");
  EXPECT_EQ(Get("/api/v1/queue?pagesize=7").status, 400);
}

TEST_F(HttpRoutesTest, UserAndLogin) {
  api_.exchange_login_code = [](const v1::ExchangeLoginCodeRequest& request)
      -> absl::StatusOr<v1::ExchangeLoginCodeResponse> {
    if (request.code() != "the-code") return absl::UnauthenticatedError("no such code");
    v1::ExchangeLoginCodeResponse response;
    response.set_token("fresh");
    response.mutable_user()->set_name("owner");
    return response;
  };
  EXPECT_EQ(Get("/api/v1/me").json(),
            (json{{"name", "owner"}, {"role", "admin"}, {"removed", false}}));
  EXPECT_EQ(Fetch("POST", "/api/v1/login-codes").json()["code"], "the-code");
  const Response login = Fetch("POST", "/api/v1/login", R"({"code":"the-code"})");
  EXPECT_EQ(login.json()["token"], "fresh");
  EXPECT_EQ(login.headers.count("set-cookie"), 0u);
  EXPECT_EQ(Fetch("POST", "/api/v1/login", R"({"code":"guess"})").status, 401);
}

TEST_F(HttpRoutesTest, MetricsAreInPrometheusText) {
  api_.metrics.queued_runs = 3;
  api_.metrics.points_stored = 123456;
  const Response response = Get("/metrics");
  EXPECT_EQ(response.headers.at("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(response.body,
              HasSubstr("# TYPE normlab_queued_runs gauge\nnormlab_queued_runs 3\n"));
  EXPECT_THAT(response.body, HasSubstr("# TYPE normlab_points_stored_total counter\n"
                                       "normlab_points_stored_total 123456\n"));
}

}  // namespace
}  // namespace normlab::http
