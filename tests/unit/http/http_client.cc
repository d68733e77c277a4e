#include "tests/unit/http/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "server/http/text.h"

namespace normlab::http {

HttpClient::HttpClient(uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval patience = {20, 0};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
}

HttpClient::~HttpClient() { Close(); }

void HttpClient::Close() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

void HttpClient::Send(std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the server has closed: the answer will tell
    text.remove_prefix(static_cast<size_t>(sent));
  }
}

bool HttpClient::Fill() {
  char piece[16384];
  const ssize_t size = recv(socket_, piece, sizeof(piece), 0);
  if (size < 0) ADD_FAILURE() << "nothing to read within 20 s, or a reset";
  if (size <= 0) return false;
  buffer_.append(piece, static_cast<size_t>(size));
  return true;
}

std::string HttpClient::Line() {
  size_t end;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    if (!Fill()) return "";
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return line;
}

std::string HttpClient::Take(size_t size) {
  while (buffer_.size() < size) {
    if (!Fill()) return "";
  }
  std::string text = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return text;
}

Response HttpClient::ReadHead() {
  Response response;
  const std::string status = Line();
  if (status.starts_with("HTTP/1.1 ")) response.status = std::atoi(status.c_str() + 9);
  while (true) {
    const std::string line = Line();
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) return response;
    response.headers[Lower(line.substr(0, colon))] = line.substr(colon + 2);
  }
}

Response HttpClient::Read(bool head_only) {
  Response response = ReadHead();
  if (head_only) return response;
  if (response.headers.count("transfer-encoding") > 0) {
    std::string chunk;
    while (!(chunk = ReadChunk()).empty()) response.body += chunk;
  } else if (const auto length = response.headers.find("content-length");
             length != response.headers.end()) {
    response.body = Take(std::strtoul(length->second.c_str(), nullptr, 10));
  }
  return response;
}

std::string HttpClient::ReadChunk() {
  const size_t size = std::strtoul(Line().c_str(), nullptr, 16);
  std::string chunk = Take(size);
  EXPECT_EQ(Line(), "");
  return chunk;
}

std::string HttpClient::ReadChunksUntil(std::string_view wanted) {
  std::string text;
  while (text.find(wanted) == std::string::npos) {
    const std::string chunk = ReadChunk();
    if (chunk.empty()) break;
    text += chunk;
  }
  return text;
}

std::string HttpClient::ReadAll() {
  while (Fill()) {
  }
  return std::exchange(buffer_, {});
}

bool HttpClient::AwaitClose() {
  char byte;
  return buffer_.empty() && recv(socket_, &byte, 1, 0) == 0;
}

uint16_t HttpTest::port() {
  if (server_ == nullptr) {
    server_ = std::make_unique<HttpServer>(api_, options_);
    const absl::StatusOr<uint16_t> port = server_->Start();
    EXPECT_TRUE(port.ok()) << port.status().ToString();
    port_ = port.value_or(0);
  }
  return port_;
}

std::string HttpTest::Text(std::string_view method, std::string_view target, std::string_view body,
                           std::string_view headers) {
  const std::string length = body.empty() ? "" : fmt::format("Content-Length: {}\r\n", body.size());
  return fmt::format(
      "{} {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n{}{}\r\n{}", method,
      target, port(), testing::FakeApi::kToken, length, headers, body);
}

Response HttpTest::Fetch(std::string_view method, std::string_view target, std::string_view body,
                         std::string_view headers) {
  HttpClient client(port());
  client.Send(Text(method, target, body, headers));
  return client.Read(method == "HEAD");
}

}  // namespace normlab::http
