// Bytes on a connection, up to the answer of the API: the parser and the checks of a real
// connection, without its socket. Each request that can be read gets a whole answer, and nobody
// without the token reaches a call.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "boost/asio/buffer.hpp"
#include "boost/beast/http/parser.hpp"
#include "boost/beast/http/string_body.hpp"
#include "server/http/errors.h"
#include "server/http/gate.h"
#include "server/http/json_body.h"
#include "server/http/text.h"
#include "tests/fakes/fake_api.h"
#include "tests/fuzz/property.h"

namespace {

namespace beast_http = boost::beast::http;
using Parser = beast_http::request_parser<beast_http::string_body>;
using normlab::http::Admitted;
using normlab::http::Answer;

constexpr char kLocal[] = "127.0.0.1:8710";

struct World {
  World() {
    api.get_run = [](const normlab::v1::GetRunRequest& request) {
      normlab::v1::Run run;
      run.set_id(request.id());
      return run;
    };
    api.create_run = [](const normlab::v1::CreateRunRequest& request) { return request.run(); };
  }
  normlab::testing::FakeApi api;
  normlab::http::ServerContext context{
      api,
      {},
      normlab::http::AllowedHosts("127.0.0.1", 8710, {}),
      normlab::http::ApiPool(api, std::make_shared<boost::asio::io_context>())};
};

void RequireWholeAnswer(const Answer& answer) {
  REQUIRE(answer.status >= 200 && answer.status < 600);
  const std::string head = HeadText(answer, normlab::http::Framing::kLength, true);
  // Nothing of the request may end the head early.
  REQUIRE(head.find("\r\n\r\n") == head.size() - 4);
  if (answer.status >= 400) {
    REQUIRE(normlab::http::IsUtf8(answer.body));
    REQUIRE(normlab::http::ParseObject(answer.body).ok());
  }
}

// Two ways to say where a body ends are how requests are smuggled past a proxy.
void RequireOneBodyEnd(const beast_http::request<beast_http::string_body>& request) {
  const size_t lengths = request.count(beast_http::field::content_length);
  const size_t codings = request.count(beast_http::field::transfer_encoding);
  REQUIRE(lengths + codings <= 1);
  REQUIRE(codings == 0 || request.chunked());
  REQUIRE(lengths == 1 || codings == 1 || request.body().empty());
}

Answer Serve(World& world, const Parser& parser) {
  std::variant<Admitted, Answer> admission =
      normlab::http::Admit(parser.get(), kLocal, world.context);
  if (const Answer* refusal = std::get_if<Answer>(&admission)) return *refusal;
  const Admitted& request = std::get<Admitted>(admission);
  if (request.match.route->handler == nullptr) {
    const absl::StatusOr<normlab::v1::WatchRunsRequest> watch =
        normlab::http::WatchRequest(request.target, "");
    return watch.ok() ? Answer{} : normlab::http::ErrorAnswer(watch.status());
  }
  normlab::http::Call call{world.api,      world.context.options, {},
                           request.target, parser.get().body(),   request.match.id};
  if (request.match.route->needs_token) {
    absl::StatusOr<normlab::app::Principal> who = world.api.Authenticate(request.token, "");
    if (!who.ok()) return normlab::http::ErrorAnswer(who.status());
    call.who = *std::move(who);
  }
  absl::StatusOr<Answer> answer = request.match.route->handler(call);
  return answer.ok() ? *std::move(answer) : normlab::http::ErrorAnswer(answer.status());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* world = new World;
  boost::asio::const_buffer rest(data, size);
  for (int requests = 0; requests < 8 && rest.size() > 0; ++requests) {
    Parser parser;
    parser.header_limit(16 * 1024);
    parser.body_limit(64 * 1024);
    parser.eager(true);
    boost::system::error_code error;
    rest += parser.put(rest, error);
    if (error || !parser.is_done() || !normlab::http::HasOneBodyEnd(parser.get())) return 0;
    RequireOneBodyEnd(parser.get());
    RequireWholeAnswer(Serve(*world, parser));
  }
  return 0;
}
