#include "server/http/http_server.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "boost/asio/co_spawn.hpp"
#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/post.hpp"
#include "boost/asio/redirect_error.hpp"
#include "boost/asio/steady_timer.hpp"
#include "boost/asio/use_awaitable.hpp"
#include "fmt/format.h"
#include "server/http/connection.h"
#include "server/http/errors.h"
#include "server/http/server_context.h"
#include "spdlog/spdlog.h"

namespace normlab::http {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// "[::1]", as written in addresses with a port, is "::1" to the resolver.
std::string_view WithoutBrackets(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) return host.substr(1, host.size() - 2);
  return host;
}

// Opens `acceptor` on the first of the host's addresses that can be had.
error_code Listen(const HttpOptions& options, tcp::acceptor& acceptor) {
  error_code error;
  tcp::resolver resolver(acceptor.get_executor());
  const auto endpoints =
      resolver.resolve(WithoutBrackets(options.host), std::to_string(options.port),
                       tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error) return error;
  for (const auto& entry : endpoints) {
    error_code ignored;
    acceptor.close(ignored);
    acceptor.open(entry.endpoint().protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(entry.endpoint(), error);
    if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
    if (!error) return error;
  }
  return error;
}

}  // namespace

// Everything that lives while the server runs. All but the constructor and Stop is on its thread.
class HttpServer::Listener {
 public:
  Listener(app::Api& api, const HttpOptions& options, std::shared_ptr<asio::io_context> io,
           tcp::acceptor acceptor, uint16_t port)
      : context_{api, options, AllowedHosts(options.host, port, options.allowed_hosts),
                 ApiPool(api, io)},
        io_(std::move(io)),
        acceptor_(std::move(acceptor)),
        retry_(*io_),
        grace_(*io_) {
    asio::co_spawn(*io_, Accept(), [](std::exception_ptr) {});
    thread_ = std::thread([this] { io_->run(); });
  }

  void Stop() {
    asio::post(*io_, [this] { BeginStop(); });
    // The io_context runs out of work when the last connection is gone.
    thread_.join();
  }

 private:
  asio::awaitable<void> Accept();
  void Serve(tcp::socket socket);
  void TurnAway(tcp::socket socket);
  void Forget(Connection* connection);
  void BeginStop();

  ServerContext context_;
  const std::shared_ptr<asio::io_context> io_;
  tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  asio::steady_timer grace_;
  std::unordered_set<Connection*> connections_;
  bool stopping_ = false;
  std::thread thread_;
};

asio::awaitable<void> HttpServer::Listener::Accept() {
  while (!stopping_) {
    error_code error;
    tcp::socket socket =
        co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (stopping_) co_return;
    if (!error) {
      Serve(std::move(socket));
      continue;
    }
    if (error == asio::error::connection_aborted) continue;
    // Out of descriptors, most likely: trying again at once would only burn the processor.
    spdlog::warn("http: cannot accept a connection: {}", error.message());
    retry_.expires_after(std::chrono::milliseconds(100));
    co_await retry_.async_wait(asio::redirect_error(asio::use_awaitable, error));
  }
}

void HttpServer::Listener::Serve(tcp::socket socket) {
  if (connections_.size() >= context_.options.max_connections) return TurnAway(std::move(socket));
  auto connection = std::make_shared<Connection>(std::move(socket), context_);
  connections_.insert(connection.get());
  asio::co_spawn(*io_, connection->Run(), [this, connection](std::exception_ptr failure) {
    Forget(connection.get());
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      spdlog::error("http: a connection broke: {}", error.what());
    }
  });
}

// Told and closed without a wait: a few hundred bytes always fit into a new socket's buffer.
void HttpServer::Listener::TurnAway(tcp::socket socket) {
  const Answer answer = ErrorAnswer(absl::UnavailableError(
      fmt::format("the server has {} connections open, which is its limit", connections_.size())));
  const std::string text =
      HeadText(answer, Framing::kLength, /*keep_alive=*/false) + std::string(answer.content());
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(text), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
}

void HttpServer::Listener::Forget(Connection* connection) {
  connections_.erase(connection);
  if (stopping_ && connections_.empty()) grace_.cancel();
}

void HttpServer::Listener::BeginStop() {
  stopping_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  retry_.cancel();
  for (Connection* connection : connections_) connection->Stop();
  if (connections_.empty()) return;
  grace_.expires_after(context_.options.stop_grace);
  grace_.async_wait([this](error_code error) {
    if (error) return;
    for (Connection* connection : connections_) connection->Close();
  });
}

HttpServer::HttpServer(app::Api& api, HttpOptions options)
    : api_(api), options_(std::move(options)) {}

HttpServer::~HttpServer() { Stop(); }

absl::StatusOr<uint16_t> HttpServer::Start() {
  auto io = std::make_shared<asio::io_context>(1);  // one thread runs it
  tcp::acceptor acceptor(*io);
  error_code error = Listen(options_, acceptor);
  if (error) {
    return absl::FailedPreconditionError(fmt::format(
        "cannot listen for HTTP on {}:{}: {}", options_.host, options_.port, error.message()));
  }
  const uint16_t port = acceptor.local_endpoint(error).port();
  listener_ = std::make_unique<Listener>(api_, options_, std::move(io), std::move(acceptor), port);
  return port;
}

void HttpServer::Stop() {
  if (!listener_) return;
  listener_->Stop();
  listener_.reset();
}

}  // namespace normlab::http
