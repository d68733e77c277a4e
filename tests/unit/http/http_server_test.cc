// Who is let in, and how HTTP itself is spoken.
#include "server/http/http_server.h"

#include <string>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/http/http_client.h"

namespace normlab::http {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class HttpServerTest : public HttpTest {
 protected:
  // A request whose head is written out, with PORT for the port.
  Response Raw(std::string text) {
    for (size_t at; (at = text.find("PORT")) != std::string::npos;) {
      text.replace(at, 4, std::to_string(port()));
    }
    HttpClient client(port());
    client.Send(text);
    return client.Read();
  }
  Response WithHeaders(std::string_view target, std::string_view headers) {
    return Raw(fmt::format("GET {} HTTP/1.1\r\n{}\r\n", target, headers));
  }
};

constexpr char kHost[] = "Host: localhost:PORT\r\n";
constexpr char kToken[] = "Authorization: Bearer owner-token\r\n";

TEST_F(HttpServerTest, OnlyHealthAndThePageNeedNoToken) {
  options_.static_file = [](std::string_view path) -> std::optional<StaticFile> {
    if (path != "/") return std::nullopt;
    return StaticFile{"text/html; charset=utf-8", "\"1\"", "<!doctype html>", false, false};
  };
  EXPECT_EQ(WithHeaders("/healthz", kHost).body, R"({"status":"ok"})");
  EXPECT_EQ(WithHeaders("/", kHost).body, "<!doctype html>");
  for (const char* path : {"/metrics", "/api/v1/runs", "/api/v1/me", "/api/v1/events"}) {
    const Response response = WithHeaders(path, kHost);
    EXPECT_EQ(response.status, 401) << path;
    EXPECT_EQ(response.headers.at("www-authenticate"), "Bearer");
    EXPECT_EQ(response.json()["error"]["status"], "UNAUTHENTICATED");
  }
}

TEST_F(HttpServerTest, AWrongTokenIsRefused) {
  for (const char* token :
       {"Bearer nobody", "Bearer owner-tokenx", "Basic owner-token", "Bearer", "owner-token"}) {
    const std::string headers = fmt::format("{}Authorization: {}\r\n", kHost, token);
    EXPECT_EQ(WithHeaders("/api/v1/me", headers).status, 401) << token;
    EXPECT_EQ(WithHeaders("/api/v1/events", headers).status, 401) << token;
  }
  EXPECT_EQ(WithHeaders("/api/v1/me", std::string(kHost) + kToken + kToken).status, 400);
  EXPECT_EQ(WithHeaders("/api/v1/me?token=owner-token", kHost).status, 401);
}

TEST_F(HttpServerTest, AForeignHostIsMisdirected) {
  for (const char* host : {"evil.example", "evil.example:PORT", "localhost:1"}) {
    const Response response =
        WithHeaders("/api/v1/me", fmt::format("Host: {}\r\n{}", host, kToken));
    EXPECT_EQ(response.status, 421) << host;
    EXPECT_THAT(response.body, HasSubstr("allowed-hosts"));
  }
  EXPECT_EQ(WithHeaders("/healthz", "Host: evil.example\r\n").status, 421);
  EXPECT_EQ(WithHeaders("/healthz", "").status, 400);
  EXPECT_EQ(WithHeaders("/healthz", std::string(kHost) + kHost).status, 400);
}

TEST_F(HttpServerTest, AForeignPageIsRefused) {
  const auto status = [&](std::string_view origin) {
    return WithHeaders("/api/v1/me", fmt::format("{}{}Origin: {}\r\n", kHost, kToken, origin))
        .status;
  };
  EXPECT_EQ(status("http://localhost:PORT"), 200);
  EXPECT_EQ(status("http://127.0.0.1:PORT"), 200);
  EXPECT_EQ(status("https://localhost:PORT"), 403);
  EXPECT_EQ(status("http://localhost:1"), 403);
  EXPECT_EQ(status("http://evil.example"), 403);
  EXPECT_EQ(status("null"), 403);
}

TEST_F(HttpServerTest, ConfiguredHostsAreAllowed) {
  options_.allowed_hosts = {"https://lab.example.org"};
  const std::string host = "Host: lab.example.org\r\n";
  EXPECT_EQ(WithHeaders("/healthz", host).status, 200);
  EXPECT_EQ(WithHeaders("/healthz", host + "Origin: https://lab.example.org\r\n").status, 200);
  EXPECT_EQ(WithHeaders("/healthz", host + "Origin: http://lab.example.org\r\n").status, 403);
}

TEST_F(HttpServerTest, EveryAnswerIsLockedDown) {
  for (const char* path : {"/healthz", "/nothing", "/api/v1/me"}) {
    const Response response = Get(path);
    EXPECT_THAT(response.headers.at("content-security-policy"),
                AllOf(HasSubstr("default-src 'none'"), HasSubstr("frame-ancestors 'none'")));
    EXPECT_EQ(response.headers.at("x-content-type-options"), "nosniff");
    EXPECT_EQ(response.headers.at("referrer-policy"), "no-referrer");
    EXPECT_EQ(response.headers.at("cross-origin-resource-policy"), "same-origin");
    EXPECT_EQ(response.headers.at("cache-control"), "no-store");
    EXPECT_EQ(response.headers.count("access-control-allow-origin"), 0u);
  }
}

TEST_F(HttpServerTest, UnknownPathsAndMethods) {
  for (const char* path :
       {"/", "/api/v1/nothing", "/api/v2/runs", "/api/v1/runs/", "/api/v1/runs/a/b",
        "/api/v1/runs/x:explode", "//api/v1/runs", "/healthz/", "/healthz:x"}) {
    const Response response = Get(path);
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_EQ(response.json()["error"]["status"], "NOT_FOUND");
  }
  const Response wrong = Fetch("DELETE", "/api/v1/runs");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers.at("allow"), "GET, HEAD, POST");
  EXPECT_EQ(Fetch("GET", "/api/v1/runs/x:cancel").headers.at("allow"), "POST");
  EXPECT_EQ(Fetch("POST", "/api/v1/events").headers.at("allow"), "GET");
  EXPECT_EQ(Fetch("BREW", "/healthz").status, 405);
}

TEST_F(HttpServerTest, OptionsAndHead) {
  const Response options = Fetch("OPTIONS", "/api/v1/runs");
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(options.headers.at("allow"), "GET, HEAD, POST, OPTIONS");
  EXPECT_EQ(options.headers.count("content-length"), 0u);
  EXPECT_EQ(Fetch("OPTIONS", "*").status, 204);
  const Response head = Fetch("HEAD", "/healthz");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("content-length"), "15");
  HttpClient client(port());
  client.Send(Text("HEAD", "/healthz") + Text("GET", "/healthz"));
  EXPECT_EQ(client.Read(/*head_only=*/true).status, 200);
  EXPECT_EQ(client.Read().body, R"({"status":"ok"})");
}

TEST_F(HttpServerTest, KeepsTheConnectionForTheNextRequest) {
  HttpClient client(port());
  for (int i = 0; i < 3; ++i) {
    client.Send(Text("GET", "/api/v1/me"));
    EXPECT_EQ(client.Read().headers.at("connection"), "keep-alive");
  }
  client.Send(Text("GET", "/nothing"));
  EXPECT_EQ(client.Read().status, 404);
  client.Send(Text("GET", "/api/v1/me", "", "Connection: close\r\n"));
  EXPECT_EQ(client.Read().headers.at("connection"), "close");
  EXPECT_TRUE(client.AwaitClose());
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInTheirOrder) {
  HttpClient client(port());
  api_.create_run = [](const v1::CreateRunRequest& request) { return request.run(); };
  client.Send(Text("POST", "/api/v1/runs", R"({"displayName":"first"})") +
              Text("POST", "/api/v1/runs", R"({"displayName":"second"})") +
              Text("GET", "/api/v1/me"));
  EXPECT_EQ(client.Read().json()["displayName"], "first");
  EXPECT_EQ(client.Read().json()["displayName"], "second");
  EXPECT_EQ(client.Read().json()["name"], "owner");
}

TEST_F(HttpServerTest, SpeaksHttp10) {
  HttpClient client(port());
  client.Send(fmt::format("GET /healthz HTTP/1.0\r\nHost: localhost:{}\r\n\r\n", port()));
  const Response response = client.Read();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.at("connection"), "close");
  EXPECT_TRUE(client.AwaitClose());
}

TEST_F(HttpServerTest, TakesABodyInChunksAndAfterAskingForIt) {
  api_.create_run = [](const v1::CreateRunRequest& request) { return request.run(); };
  HttpClient client(port());
  client.Send(Text("POST", "/api/v1/runs", "", "Transfer-Encoding: chunked\r\n") +
              "8\r\n{\"displ\r\n" + "f\r\nayName\":\"five\"}\r\n0\r\n\r\n");
  // The sizes are right, or the JSON would not be.
  EXPECT_EQ(client.Read().status, 400);

  HttpClient patient(port());
  const std::string body = R"({"displayName":"six"})";
  patient.Send(Text("POST", "/api/v1/runs", "",
                    fmt::format("Content-Length: {}\r\nExpect: 100-continue\r\n", body.size())));
  EXPECT_EQ(patient.ReadHead().status, 100);
  patient.Send(body);
  EXPECT_EQ(patient.Read().json()["displayName"], "six");
}

TEST_F(HttpServerTest, ServesTheDashboardsFiles) {
  options_.static_file = [](std::string_view path) -> std::optional<StaticFile> {
    if (path != "/assets/a b.js") return std::nullopt;
    return StaticFile{"text/javascript", "\"v1\"", "let x;", false, true};
  };
  const Response file = Get("/assets/a%20b.js");
  EXPECT_EQ(file.body, "let x;");
  EXPECT_EQ(file.headers.at("content-type"), "text/javascript");
  EXPECT_EQ(file.headers.at("etag"), "W/\"v1\"");
  EXPECT_THAT(file.headers.at("cache-control"), HasSubstr("immutable"));
  HttpClient client(port());
  client.Send(Text("GET", "/assets/a%20b.js", "", "If-None-Match: W/\"v1\"\r\n") +
              Text("HEAD", "/assets/a%20b.js"));
  const Response same = client.ReadHead();
  EXPECT_EQ(same.status, 304);
  EXPECT_EQ(client.Read(/*head_only=*/true).headers.at("content-length"), "6");
  EXPECT_EQ(Fetch("POST", "/assets/a%20b.js").headers.at("allow"), "GET, HEAD");
  EXPECT_EQ(Get("/assets/../assets/a%20b.js").status, 404);
}

TEST_F(HttpServerTest, SaysWhereItCannotListen) {
  HttpServer second(api_, {.port = port()});
  const absl::StatusOr<uint16_t> taken = second.Start();
  EXPECT_EQ(taken.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(taken.status().message()),
              HasSubstr(fmt::format("127.0.0.1:{}: Address already in use", port())));
  HttpServer nowhere(api_, {.host = "no.such.host.invalid", .port = 0});
  EXPECT_FALSE(nowhere.Start().ok());
}

TEST_F(HttpServerTest, StopsWithAnswersUnderWay) {
  std::mutex mutex;
  std::condition_variable changed;
  bool asked = false, go_on = false;
  api_.get_run = [&](const v1::GetRunRequest&) {
    std::unique_lock lock(mutex);
    asked = true;
    changed.notify_all();
    changed.wait(lock, [&] { return go_on; });
    return v1::Run();
  };
  HttpClient client(port()), idle(port());
  idle.Send(Text("GET", "/healthz"));
  idle.Read();
  client.Send(Text("GET", "/api/v1/runs/x"));
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return asked; });
  lock.unlock();
  std::thread stopper([&] { server().Stop(); });
  EXPECT_TRUE(idle.AwaitClose());  // so that Stop has begun
  lock.lock();
  go_on = true;
  changed.notify_all();
  lock.unlock();
  const Response response = client.Read();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.at("connection"), "close");
  client.Close();
  stopper.join();
}

}  // namespace
}  // namespace normlab::http
