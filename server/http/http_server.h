// The server's HTTP face: JSON API, event streams, metrics and the dashboard's files on one port.
//
//   http::HttpServer server(api, options);
//   absl::StatusOr<uint16_t> port = server.Start();
//   ...
//   server.Stop();
//
// One thread serves all sockets; every call of the api is made on the api's own pool. Stop before
// the api goes: answers under way still need it.
#ifndef NORMLAB_SERVER_HTTP_HTTP_SERVER_H_
#define NORMLAB_SERVER_HTTP_HTTP_SERVER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/app/api.h"
#include "server/http/options.h"

namespace normlab::http {

// Start and Stop from one thread, once each.
class HttpServer {
 public:
  // `api` outlives the server.
  HttpServer(app::Api& api, HttpOptions options);
  ~HttpServer();  // stops
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Listens and serves. The port, or why it cannot listen there.
  absl::StatusOr<uint16_t> Start();
  // Takes no new requests, ends the event streams, finishes answers under way (what is not done
  // within the grace is cut off), returns when all of that is over. Harmless when not started.
  void Stop();

 private:
  class Listener;

  app::Api& api_;
  const HttpOptions options_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_HTTP_SERVER_H_
