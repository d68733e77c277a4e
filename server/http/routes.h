// Which call a request means.
#ifndef NORMLAB_SERVER_HTTP_ROUTES_H_
#define NORMLAB_SERVER_HTTP_ROUTES_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/app/api.h"
#include "server/http/answer.h"
#include "server/http/options.h"
#include "server/http/target.h"

namespace normlab::http {

// One request on its way to the api. Made on the socket thread, used on the api's pool.
struct Call {
  app::Api& api;
  const HttpOptions& options;
  app::Principal who;  // where the route needs no token, only whence it comes
  const Target& target;
  std::string_view body;
  std::string_view id;  // what stood for '*' in the pattern
};

// Runs on the api's pool.
using Handler = absl::StatusOr<Answer> (*)(const Call& call);

struct Route {
  std::string_view method;   // GET also serves HEAD, unless it is a stream
  std::string_view pattern;  // "/api/v1/runs/*:cancel"
  Handler handler;           // nullptr: the event stream
  bool needs_token = true;
  bool reads_much = false;  // and so stands in no short call's way
};

struct Match {
  const Route* route = nullptr;  // none for this path and method
  std::string allow;             // methods that the path has: "GET, HEAD"; empty: no such path
  std::string id;                // what stood for '*' in the pattern
};

Match FindRoute(std::string_view method, const Target& target);

// What GET /api/v1/events asks for. A Last-Event-ID is newer than the `resume` in the address: an
// EventSource that reconnects sends both.
absl::StatusOr<v1::WatchRunsRequest> WatchRequest(const Target& target,
                                                  std::string_view last_event_id);

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_ROUTES_H_
