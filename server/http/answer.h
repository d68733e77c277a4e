// An answer to one request, and its head as text.
#ifndef NORMLAB_SERVER_HTTP_ANSWER_H_
#define NORMLAB_SERVER_HTTP_ANSWER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace normlab::http {

inline constexpr std::string_view kJsonType = "application/json; charset=utf-8";

struct Answer {
  int status = 200;
  std::string content_type;  // empty: there is no body
  std::string body;
  // Instead of `body`: text that outlives the connection, such as a file of the dashboard.
  std::string_view fixed_body;
  // Further headers. Both texts are the server's own: nothing here comes from the request.
  std::vector<std::pair<std::string, std::string>> headers;

  std::string_view content() const { return fixed_body.empty() ? body : fixed_body; }
};

Answer JsonAnswer(std::string json);

// How the body's end is told.
enum class Framing {
  kLength,   // Content-Length
  kChunked,  // an event stream
  kClose,    // an event stream for HTTP/1.0
};

// The status line and all headers, with the empty line: the answer's own, and those that every
// answer has (no cookies, no sharing with other sites, no scripts but our own).
std::string HeadText(const Answer& answer, Framing framing, bool keep_alive);

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_ANSWER_H_
