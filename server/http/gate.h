// The checks that every request passes before anything is done for it, in this order: its form,
// the Host it names, the page it comes from, the path, the method, and that it brings a token.
// Whose token it is, the api says later.
#ifndef NORMLAB_SERVER_HTTP_GATE_H_
#define NORMLAB_SERVER_HTTP_GATE_H_

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "boost/beast/http/fields.hpp"
#include "boost/beast/http/message.hpp"
#include "server/http/answer.h"
#include "server/http/routes.h"
#include "server/http/server_context.h"

namespace normlab::http {

using RequestHead = boost::beast::http::request_header<>;

// A request that may go on: to a route, or to a file.
struct Admitted {
  Target target;
  Match match;
  std::string token;
  std::optional<StaticFile> file;
};

// The request, or the answer that refuses it (or, for OPTIONS, says what there is). `local` is the
// address that the connection came in on, as in a Host header.
std::variant<Admitted, Answer> Admit(const RequestHead& head, std::string_view local,
                                     const ServerContext& context);

// Whether a head says in one way where its body ends: by Content-Length, or in chunks. A proxy in
// front of this server that reads another end than we do would take one client's bytes for
// another's request.
bool HasOneBodyEnd(const RequestHead& head);

// The text of a header; "" if it is absent.
std::string_view Header(const RequestHead& head, boost::beast::http::field name);

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_GATE_H_
