#include "server/http/connection.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "boost/asio/redirect_error.hpp"
#include "boost/asio/use_awaitable.hpp"
#include "boost/beast/http/error.hpp"
#include "boost/beast/http/read.hpp"
#include "fmt/format.h"
#include "server/http/errors.h"
#include "server/http/socket_io.h"
#include "server/http/static_file.h"
#include "server/http/text.h"
#include "spdlog/spdlog.h"

namespace normlab::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;

namespace {

// "127.0.0.1:8710", "[::1]:8710"; an IPv4 client of an IPv6 socket came in on an IPv4 address.
std::string LocalAddress(const asio::ip::tcp::socket& socket) {
  error_code error;
  const asio::ip::tcp::endpoint endpoint = socket.local_endpoint(error);
  if (error) return "";
  asio::ip::address address = endpoint.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  }
  const std::string text = address.to_string();
  if (address.is_v6()) return fmt::format("[{}]:{}", text, endpoint.port());
  return fmt::format("{}:{}", text, endpoint.port());
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, ServerContext& context)
    : context_(context),
      stream_(std::move(socket)),
      // Room for a head and what was sent behind it; the parser has the limits that clients meet.
      buffer_(2 * context.options.max_header_bytes + 64 * 1024),
      local_(LocalAddress(stream_.socket())),
      peer_(PeerAddress(stream_.socket())) {
  error_code ignored;
  stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
}

void Connection::Stop() {
  stopping_ = true;
  if (events_) {
    events_->Stop();
  } else if (!answering_) {
    Close();
  }
}

asio::awaitable<void> Connection::Run() {
  bool open = true;
  while (open && !stopping_) {
    open = co_await AwaitRequest();
    if (open) open = co_await ReadHead();
    answering_ = open;
    if (open) open = co_await Serve();
    answering_ = false;
  }
  if (stream_.socket().is_open()) co_await Linger(stream_);
}

// Waiting for a request may take long, sending one may not.
asio::awaitable<bool> Connection::AwaitRequest() {
  if (buffer_.size() > 0) co_return true;
  stream_.expires_after(context_.options.idle_timeout);
  error_code error;
  const size_t size = co_await stream_.async_read_some(
      buffer_.prepare(4096), asio::redirect_error(asio::use_awaitable, error));
  buffer_.commit(size);
  if (error) Close();
  co_return !error;
}

asio::awaitable<bool> Connection::ReadHead() {
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(context_.options.max_header_bytes));
  parser_->body_limit(context_.options.max_body_bytes);
  stream_.expires_after(context_.options.header_timeout);
  error_code error;
  co_await beast::http::async_read_header(stream_, buffer_, *parser_,
                                          asio::redirect_error(asio::use_awaitable, error));
  if (!error && !HasOneBodyEnd(parser_->get())) error = beast::http::error::bad_transfer_encoding;
  if (!error) co_return true;
  co_return co_await Refuse(error);
}

asio::awaitable<bool> Connection::ReadBody() {
  error_code error;
  if (EqualsIgnoreCase(Header(parser_->get(), beast::http::field::expect), "100-continue")) {
    std::vector<asio::const_buffer> go_on = {asio::buffer("HTTP/1.1 100 Continue\r\n\r\n", 25)};
    co_await WriteAll(stream_, std::move(go_on), context_.options.write_timeout);
  }
  stream_.expires_after(context_.options.body_timeout);
  co_await beast::http::async_read(stream_, buffer_, *parser_,
                                   asio::redirect_error(asio::use_awaitable, error));
  if (!error) co_return true;
  co_return co_await Refuse(error);
}

// Says what is wrong with a request that cannot be read; what follows it cannot be found either.
asio::awaitable<bool> Connection::Refuse(error_code error) {
  // Gone, timed out or closed by Stop: there is nobody to tell.
  if (error.category() != make_error_code(beast::http::error::bad_method).category() ||
      error == beast::http::error::end_of_stream || error == beast::http::error::partial_message) {
    Close();
    co_return false;
  }
  Answer answer;
  if (error == beast::http::error::body_limit) {
    answer =
        ErrorAnswer(413, absl::InvalidArgumentError(fmt::format("the body is larger than {} bytes",
                                                                context_.options.max_body_bytes)));
  } else if (error == beast::http::error::header_limit ||
             error == beast::http::error::buffer_overflow) {
    answer = ErrorAnswer(
        431, absl::InvalidArgumentError(fmt::format("the headers are larger than {} bytes",
                                                    context_.options.max_header_bytes)));
  } else {
    answer = ErrorAnswer(
        absl::InvalidArgumentError(fmt::format("malformed request: {}", error.message())));
  }
  co_return co_await Send(answer, /*keep_alive=*/false);
}

asio::awaitable<bool> Connection::Serve() {
  std::variant<Admitted, Answer> admission = Admit(parser_->get(), local_, context_);
  if (const Answer* refusal = std::get_if<Answer>(&admission)) {
    // A refused body is not read, so that nothing can be found behind it.
    co_return co_await Send(*refusal, parser_->is_done());
  }
  const Admitted& request = std::get<Admitted>(admission);
  if (!parser_->is_done()) {
    const bool whole = co_await ReadBody();
    if (!whole) co_return false;
  }
  if (request.file) {
    const RequestHead& head = parser_->get();
    const Answer file = StaticAnswer(*request.file, Header(head, beast::http::field::if_none_match),
                                     Header(head, beast::http::field::accept_encoding));
    co_return co_await Send(file, true);
  }
  if (request.match.route->handler == nullptr) co_return co_await ServeEvents(request);

  auto handle = [this, &request] { return Handle(request); };
  const auto lane = request.match.route->reads_much ? ApiPool::Lane::kReads : ApiPool::Lane::kShort;
  absl::StatusOr<Answer> answer = co_await context_.pool.Run(std::move(handle), lane);
  if (!answer.ok()) {
    if (HttpStatus(answer.status().code()) >= 500) {
      spdlog::warn("http {}: {}", request.target.path, answer.status().ToString());
    }
    answer = ErrorAnswer(answer.status());
  }
  co_return co_await Send(*answer, true);
}

asio::awaitable<bool> Connection::Send(const Answer& answer, bool keep_alive) {
  keep_alive = keep_alive && !stopping_ && parser_->get().keep_alive();
  const std::string head = HeadText(answer, Framing::kLength, keep_alive);
  std::vector<asio::const_buffer> buffers = {asio::buffer(head)};
  if (parser_->get().method() != beast::http::verb::head) {
    buffers.push_back(asio::buffer(answer.content().data(), answer.content().size()));
  }
  const bool written =
      co_await WriteAll(stream_, std::move(buffers), context_.options.write_timeout);
  if (!written) Close();
  co_return written&& keep_alive;
}

absl::StatusOr<Answer> Connection::Handle(const Admitted& request) {
  Call call{context_.api,   context_.options,      app::Principal(),
            request.target, parser_->get().body(), request.match.id};
  call.who.origin = peer_;
  if (request.match.route->needs_token) {
    absl::StatusOr<app::Principal> who = context_.api.Authenticate(request.token, peer_);
    if (!who.ok()) return who.status();
    call.who = *std::move(who);
  }
  return request.match.route->handler(call);
}

absl::StatusOr<std::unique_ptr<app::Watch>> Connection::OpenWatch(const Admitted& request) {
  const absl::StatusOr<app::Principal> who = context_.api.Authenticate(request.token, peer_);
  if (!who.ok()) return who.status();
  const beast::string_view last_id = parser_->get()["Last-Event-ID"];
  const absl::StatusOr<v1::WatchRunsRequest> watch =
      WatchRequest(request.target, std::string_view(last_id.data(), last_id.size()));
  if (!watch.ok()) return watch.status();
  return context_.api.WatchRuns(*who, *watch);
}

asio::awaitable<bool> Connection::ServeEvents(const Admitted& request) {
  auto open = [this, &request] { return OpenWatch(request); };
  absl::StatusOr<std::unique_ptr<app::Watch>> watch = co_await context_.pool.Run(std::move(open));
  if (!watch.ok()) {
    const Answer answer = ErrorAnswer(watch.status());
    co_return co_await Send(answer, true);
  }
  events_.emplace(stream_, context_, *std::move(watch), parser_->get().version() >= 11);
  if (stopping_) events_->Stop();
  co_await events_->Run();
  events_.reset();
  co_return false;
}

}  // namespace normlab::http
