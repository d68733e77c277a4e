// Hostile and broken clients.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/http/http_client.h"

namespace normlab::http {
namespace {

using ::testing::HasSubstr;

class HttpLimitsTest : public HttpTest {
 protected:
  ~HttpLimitsTest() override { EXPECT_EQ(Get("/healthz").status, 200) << "the server lives on"; }
};

TEST_F(HttpLimitsTest, AnOversizedBodyIsRefusedUnread) {
  HttpClient client(port());
  client.Send(Text("POST", "/api/v1/runs", "", "Content-Length: 1048577\r\n"));
  const Response response = client.Read();
  EXPECT_EQ(response.status, 413);
  EXPECT_THAT(response.body, HasSubstr("1048576 bytes"));
  EXPECT_TRUE(client.AwaitClose());
}

TEST_F(HttpLimitsTest, AnOversizedBodyThatIsSentAnywayStillGetsItsAnswer) {
  EXPECT_EQ(Fetch("POST", "/api/v1/runs", std::string(3 << 20, ' ')).status, 413);
  HttpClient client(port());
  client.Send(Text("POST", "/api/v1/runs", "", "Transfer-Encoding: chunked\r\n"));
  client.Send("200000\r\n" + std::string(0x200000, ' ') + "\r\n0\r\n\r\n");
  EXPECT_EQ(client.Read().status, 413);
}

TEST_F(HttpLimitsTest, ALargeBodyWithinTheLimitIsRead) {
  api_.create_run = [](const v1::CreateRunRequest& request) { return request.run(); };
  const std::string name(1000000, 'n');
  EXPECT_EQ(
      Fetch("POST", "/api/v1/runs", "{\"displayName\":\"" + name + "\"}").json()["displayName"],
      name);
}

TEST_F(HttpLimitsTest, OversizedHeadersAreRefused) {
  for (const std::string& request :
       {Text("GET", "/healthz", "", "X: " + std::string(20000, 'x') + "\r\n"),
        Text("GET", "/" + std::string(200000, 'x'))}) {
    HttpClient client(port());
    client.Send(request);
    EXPECT_EQ(client.Read().status, 431);
    EXPECT_TRUE(client.AwaitClose());
  }
}

TEST_F(HttpLimitsTest, MalformedRequestsAreRefusedAndTheConnectionClosed) {
  for (const char* request :
       {"nonsense\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\r\n\r\n",
        "GET / HTTP/1.1\r\nbad header\r\n\r\n", "GET / HTTP/1.1\r\nA : b\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"}) {
    HttpClient client(port());
    client.Send(request);
    const Response response = client.Read();
    EXPECT_EQ(response.status, 400) << request;
    EXPECT_EQ(response.headers.at("connection"), "close");
    EXPECT_TRUE(client.AwaitClose());
  }
}

// What a proxy in front might read differently, so that a body becomes somebody else's request.
TEST_F(HttpLimitsTest, BodiesWhoseEndIsToldTwiceOrUnclearlyAreRefused) {
  for (const char* headers : {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                              "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
                              "Transfer-Encoding: chunked, x\r\nContent-Length: 5\r\n",
                              "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                              "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
                              "Transfer-Encoding: gzip, chunked\r\n",
                              "Transfer-Encoding: chunked, gzip\r\n",
                              "Transfer-Encoding: identity\r\n",
                              "Transfer-Encoding: xchunked\r\n",
                              "Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n",
                              "Transfer-Encoding: \r\n",
                              "Transfer-Encoding : chunked\r\n",
                              "Transfer-Encoding: \x0b"
                              "chunked\r\n",
                              "Content-Length: 5\r\nContent-Length: 5\r\n",
                              "Content-Length: 5, 5\r\n",
                              "Content-Length: +5\r\n",
                              "Content-Length: 0x5\r\n",
                              "Content-Length: 5 5\r\n",
                              "Content-Length: 18446744073709551621\r\n",
                              "Content-Length: \r\n"}) {
    HttpClient client(port());
    client.Send(Text("POST", "/api/v1/runs", "", headers) + "0\r\n\r\n");
    const Response response = client.Read();
    EXPECT_EQ(response.status, 400) << headers;
    EXPECT_EQ(response.headers.at("connection"), "close") << headers;
    EXPECT_TRUE(client.AwaitClose()) << headers;
  }
}

TEST_F(HttpLimitsTest, ChunksInHttp10AreRefused) {
  HttpClient client(port());
  client.Send(
      fmt::format("POST /api/v1/runs HTTP/1.0\r\nHost: localhost:{}\r\n"
                  "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                  port()));
  EXPECT_EQ(client.Read().status, 400);
  EXPECT_TRUE(client.AwaitClose());
}

TEST_F(HttpLimitsTest, MalformedChunksAreRefused) {
  for (const char* chunks : {"g\r\n\r\n", "-1\r\n", "5\r\n{\"a\":1}\r\n0\r\n\r\n",
                             "10000000000000000\r\nx", "\r\n0\r\n\r\n"}) {
    HttpClient client(port());
    client.Send(Text("POST", "/api/v1/runs", "", "Transfer-Encoding: chunked\r\n") + chunks);
    const Response response = client.Read();
    EXPECT_TRUE(response.status == 400 || response.status == 413) << response.status << chunks;
    EXPECT_TRUE(client.AwaitClose()) << chunks;
  }
}

TEST_F(HttpLimitsTest, FoldedAndOddHeadersDoNotOpenTheGate) {
  for (const char* header : {"Authorization:\r\n Bearer wrong\r\n", "Authorization: Bearer\r\n",
                             "Authorization: Bearer \xff\xfe\r\n"}) {
    HttpClient client(port());
    client.Send(
        fmt::format("GET /api/v1/me HTTP/1.1\r\nHost: localhost:{}\r\n{}\r\n", port(), header));
    EXPECT_EQ(client.Read().status, 401) << header;
  }
}

TEST_F(HttpLimitsTest, MalformedTargetsAreRefused) {
  for (const char* target : {"/api/v1/runs/%zz", "/api/v1/runs?states=%", "/%00", "/%ff",
                             "http://localhost/healthz", "healthz"}) {
    EXPECT_EQ(Get(target).status, 400) << target;
  }
}

TEST_F(HttpLimitsTest, ARefusedBodyIsNotTakenForTheNextRequest) {
  HttpClient client(port());
  client.Send(
      fmt::format("POST /api/v1/runs HTTP/1.1\r\nHost: localhost:{}\r\n"
                  "Content-Length: 100\r\n\r\n",
                  port()));
  const Response response = client.Read();
  EXPECT_EQ(response.status, 401);
  EXPECT_EQ(response.headers.at("connection"), "close");
  client.Send(Text("GET", "/healthz"));
  EXPECT_TRUE(client.AwaitClose());
}

TEST_F(HttpLimitsTest, SlowAndSilentClientsAreLetGo) {
  options_.idle_timeout = std::chrono::milliseconds(30);
  options_.header_timeout = std::chrono::milliseconds(30);
  options_.body_timeout = std::chrono::milliseconds(30);
  HttpClient silent(port()), slow_head(port()), slow_body(port()), idle(port());
  slow_head.Send("GET /healthz HT");
  slow_body.Send(Text("POST", "/api/v1/runs", "", "Content-Length: 5\r\n") + "{");
  idle.Send(Text("GET", "/healthz"));
  EXPECT_EQ(idle.Read().status, 200);
  for (HttpClient* client : {&silent, &slow_head, &slow_body, &idle}) {
    EXPECT_TRUE(client->AwaitClose());
  }
}

TEST_F(HttpLimitsTest, ClientsThatVanishAreForgotten) {
  for (int i = 0; i < 50; ++i) {
    HttpClient client(port());
    client.Send(Text("GET", "/api/v1/me").substr(0, static_cast<size_t>(i) * 3));
  }
}

TEST_F(HttpLimitsTest, ConnectionsBeyondTheLimitAreTurnedAway) {
  options_.max_connections = 3;
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<HttpClient>(port()));
    clients.back()->Send(Text("GET", "/healthz"));
    EXPECT_EQ(clients.back()->Read().status, 200);
  }
  HttpClient beyond(port());
  const Response response = beyond.Read();
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, HasSubstr("3 connections"));
  EXPECT_TRUE(beyond.AwaitClose());
  clients[0]->Send(Text("GET", "/healthz", "", "Connection: close\r\n"));
  EXPECT_EQ(clients[0]->Read().status, 200);
  EXPECT_TRUE(clients[0]->AwaitClose());
  clients.clear();
}

}  // namespace
}  // namespace normlab::http
