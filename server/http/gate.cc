#include "server/http/gate.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "server/http/errors.h"
#include "server/http/text.h"

namespace normlab::http {
namespace {

namespace beast_http = boost::beast::http;

std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

std::optional<Answer> CheckSender(const RequestHead& head, std::string_view local,
                                  const AllowedHosts& hosts) {
  if (head.count(beast_http::field::host) != 1 || head.count(beast_http::field::origin) > 1 ||
      head.count(beast_http::field::authorization) > 1) {
    return ErrorAnswer(absl::InvalidArgumentError(
        "a request needs one Host header, and at most one Origin and one Authorization"));
  }
  const std::string_view host = Header(head, beast_http::field::host);
  if (!hosts.HostAllowed(host, local)) {
    return ErrorAnswer(
        421, absl::PermissionDeniedError(fmt::format(
                 "this server is not known as \"{}\"; give further names with --allowed-hosts",
                 Shortened(host, 100))));
  }
  if (head.count(beast_http::field::origin) == 1 &&
      !hosts.OriginAllowed(Header(head, beast_http::field::origin), local)) {
    return ErrorAnswer(absl::PermissionDeniedError(
        fmt::format("pages of \"{}\" may not speak to this server",
                    Shortened(Header(head, beast_http::field::origin), 100))));
  }
  return std::nullopt;
}

Answer Options(std::string allow) {
  Answer answer;
  answer.status = 204;
  answer.headers.emplace_back("Allow", std::move(allow));
  return answer;
}

Answer WrongMethod(std::string_view method, const std::string& allow) {
  Answer answer =
      ErrorAnswer(405, absl::UnimplementedError(fmt::format("this path has no {}, only {}",
                                                            Shortened(method, 40), allow)));
  answer.headers.emplace_back("Allow", allow);
  return answer;
}

// The file or the route, or why there is none.
std::optional<Answer> FindPlace(std::string_view method, const HttpOptions& options,
                                Admitted& request) {
  request.match = FindRoute(method, request.target);
  std::string allow = request.match.allow;
  if (allow.empty() && options.static_file) {
    request.file = options.static_file(request.target.path);
    if (request.file) allow = "GET, HEAD";
  }
  if (allow.empty()) {
    return ErrorAnswer(absl::NotFoundError(
        fmt::format("there is nothing at {}", Shortened(request.target.path, 200))));
  }
  if (method == "OPTIONS") return Options(allow + ", OPTIONS");
  const bool found =
      request.file ? method == "GET" || method == "HEAD" : request.match.route != nullptr;
  if (!found) return WrongMethod(method, allow);
  return std::nullopt;
}

}  // namespace

std::string_view Header(const RequestHead& head, beast_http::field name) {
  return View(head[name]);
}

bool HasOneBodyEnd(const RequestHead& head) {
  const size_t lengths = head.count(beast_http::field::content_length);
  const size_t codings = head.count(beast_http::field::transfer_encoding);
  if (lengths + codings > 1) return false;
  // "5, 5" would be two that agree.
  if (codings == 0)
    return View(head[beast_http::field::content_length]).find(',') == std::string_view::npos;
  return head.version() >= 11 &&
         EqualsIgnoreCase(Header(head, beast_http::field::transfer_encoding), "chunked");
}

std::variant<Admitted, Answer> Admit(const RequestHead& head, std::string_view local,
                                     const ServerContext& context) {
  std::optional<Answer> refusal = CheckSender(head, local, context.hosts);
  if (refusal) return *std::move(refusal);

  const std::string_view method = View(head.method_string());
  if (method == "OPTIONS" && View(head.target()) == "*") {
    return Options("GET, HEAD, POST, OPTIONS");
  }
  absl::StatusOr<Target> target = ParseTarget(View(head.target()));
  if (!target.ok()) return ErrorAnswer(target.status());
  Admitted request;
  request.target = *std::move(target);
  refusal = FindPlace(method, context.options, request);
  if (refusal) return *std::move(refusal);

  if (!request.file && request.match.route->needs_token) {
    const std::optional<std::string_view> token =
        BearerToken(Header(head, beast_http::field::authorization));
    if (!token) {
      return ErrorAnswer(absl::UnauthenticatedError(
          "a token is needed: send the header \"Authorization: Bearer TOKEN\""));
    }
    request.token = std::string(*token);
  }
  return request;
}

}  // namespace normlab::http
