// One client: reads its requests one after the other and answers each.
#ifndef NORMLAB_SERVER_HTTP_CONNECTION_H_
#define NORMLAB_SERVER_HTTP_CONNECTION_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "boost/asio/awaitable.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/beast/core/flat_buffer.hpp"
#include "boost/beast/core/tcp_stream.hpp"
#include "boost/beast/http/parser.hpp"
#include "boost/beast/http/string_body.hpp"
#include "server/http/answer.h"
#include "server/http/event_stream.h"
#include "server/http/gate.h"
#include "server/http/server_context.h"

namespace normlab::http {

// Lives on the socket thread; only the calls of the api leave it.
class Connection {
 public:
  Connection(boost::asio::ip::tcp::socket socket, ServerContext& context);

  // From the first byte to the last. Its owner keeps the connection until then.
  boost::asio::awaitable<void> Run();
  // Answers what is being answered, reads nothing more.
  void Stop();
  // At once, whatever is going on.
  void Close() { stream_.close(); }

 private:
  // Each returns whether the connection goes on.
  boost::asio::awaitable<bool> AwaitRequest();
  boost::asio::awaitable<bool> ReadHead();
  boost::asio::awaitable<bool> ReadBody();
  boost::asio::awaitable<bool> Serve();
  boost::asio::awaitable<bool> Send(const Answer& answer, bool keep_alive);
  boost::asio::awaitable<bool> Refuse(boost::system::error_code error);
  boost::asio::awaitable<bool> ServeEvents(const Admitted& request);

  // On the api's pool.
  absl::StatusOr<Answer> Handle(const Admitted& request);
  absl::StatusOr<std::unique_ptr<app::Watch>> OpenWatch(const Admitted& request);

  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  ServerContext& context_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;  // read from the client, not yet parsed
  std::string local_;                 // the address it came in on, as in a Host header
  std::string peer_;                  // the client's address
  std::optional<Parser> parser_;      // of the request in hand
  std::optional<EventStream> events_;
  bool answering_ = false;
  bool stopping_ = false;
};

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_CONNECTION_H_
