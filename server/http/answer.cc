#include "server/http/answer.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "boost/beast/http/status.hpp"
#include "fmt/format.h"

namespace normlab::http {
namespace {

constexpr std::string_view kSecurityHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; worker-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n";

std::string_view Reason(int status) {
  if (status == 499) return "Client Closed Request";  // in use everywhere, registered nowhere
  const auto reason =
      boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(status));
  return {reason.data(), reason.size()};
}

bool HasHeader(const Answer& answer, std::string_view name) {
  return std::any_of(answer.headers.begin(), answer.headers.end(),
                     [name](const auto& header) { return header.first == name; });
}

}  // namespace

Answer JsonAnswer(std::string json) {
  Answer answer;
  answer.content_type = kJsonType;
  answer.body = std::move(json);
  return answer;
}

std::string HeadText(const Answer& answer, Framing framing, bool keep_alive) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", answer.status, Reason(answer.status));
  head += absl::FormatTime("Date: %a, %d %b %Y %H:%M:%S GMT\r\n", absl::Now(), absl::UTCTimeZone());
  head += kSecurityHeaders;
  if (!answer.content_type.empty()) {
    head += fmt::format("Content-Type: {}\r\n", answer.content_type);
  }
  for (const auto& [name, value] : answer.headers) {
    head += fmt::format("{}: {}\r\n", name, value);
  }
  // Answers of the API are true at the time of asking and hold what others must not read.
  if (!HasHeader(answer, "Cache-Control")) head += "Cache-Control: no-store\r\n";
  if (framing == Framing::kChunked) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (framing == Framing::kLength && answer.status != 204 && answer.status != 304) {
    head += fmt::format("Content-Length: {}\r\n", answer.content().size());
  }
  head += fmt::format("Connection: {}\r\n\r\n", keep_alive ? "keep-alive" : "close");
  return head;
}

}  // namespace normlab::http
