// A client that sends exactly the bytes a test wants, and a server for it to talk to.
#ifndef NORMLAB_TESTS_UNIT_HTTP_HTTP_CLIENT_H_
#define NORMLAB_TESTS_UNIT_HTTP_HTTP_CLIENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/http/http_server.h"
#include "tests/fakes/fake_api.h"

namespace normlab::http {

struct Response {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;

  nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
};

// One connection. A read that gets nothing for 20 s fails the test instead of hanging it.
class HttpClient {
 public:
  explicit HttpClient(uint16_t port);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  void Send(std::string_view text);
  // The next response, by its Content-Length or chunks; `head_only` after HEAD.
  Response Read(bool head_only = false);
  // Status line and headers of the next response: of a stream, say.
  Response ReadHead();
  // The text of the next chunk, "" at the last.
  std::string ReadChunk();
  // Chunks until the text has `wanted` in it, or the stream ends.
  std::string ReadChunksUntil(std::string_view wanted);
  // Everything until the server closes.
  std::string ReadAll();
  // Whether the server has closed the connection (with no more bytes).
  bool AwaitClose();
  void Close();

 private:
  std::string Line();
  std::string Take(size_t size);
  bool Fill();

  int socket_;
  std::string buffer_;
};

class HttpTest : public ::testing::Test {
 protected:
  ~HttpTest() override { server_.reset(); }

  // Called by the first use; a test may change `options_` before.
  uint16_t port();
  HttpServer& server() {
    port();
    return *server_;
  }

  // The head of a request with the right Host and token, and its body.
  std::string Text(std::string_view method, std::string_view target, std::string_view body = "",
                   std::string_view headers = "");
  // One request on a connection of its own.
  Response Fetch(std::string_view method, std::string_view target, std::string_view body = "",
                 std::string_view headers = "");
  Response Get(std::string_view target) { return Fetch("GET", target); }

  testing::FakeApi api_;
  HttpOptions options_ = {.port = 0};

 private:
  std::unique_ptr<HttpServer> server_;
  uint16_t port_ = 0;
};

}  // namespace normlab::http

#endif  // NORMLAB_TESTS_UNIT_HTTP_HTTP_CLIENT_H_
