#include "server/http/socket_io.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include "boost/asio/redirect_error.hpp"
#include "boost/asio/use_awaitable.hpp"
#include "boost/asio/write.hpp"
#include "boost/beast/core/buffers_prefix.hpp"
#include "boost/beast/core/buffers_suffix.hpp"
#include "fmt/format.h"

namespace normlab::http {

namespace asio = boost::asio;
namespace beast = boost::beast;

std::string PeerAddress(const asio::ip::tcp::socket& socket) {
  boost::system::error_code error;
  const asio::ip::tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return "";
  const std::string address = peer.address().to_string();
  return peer.address().is_v6() ? fmt::format("[{}]:{}", address, peer.port())
                                : fmt::format("{}:{}", address, peer.port());
}

asio::awaitable<bool> WriteAll(beast::tcp_stream& stream, std::vector<asio::const_buffer> buffers,
                               std::chrono::milliseconds timeout) {
  constexpr size_t kSlice = 64 * 1024;
  beast::buffers_suffix<std::vector<asio::const_buffer>> rest(std::move(buffers));
  while (asio::buffer_size(rest) > 0) {
    stream.expires_after(timeout);
    const auto slice = beast::buffers_prefix(kSlice, rest);
    boost::system::error_code error;
    const size_t written =
        co_await asio::async_write(stream, slice, asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return false;
    rest.consume(written);
  }
  co_return true;
}

asio::awaitable<void> Linger(beast::tcp_stream& stream) {
  constexpr size_t kMost = 8 * 1024 * 1024;
  boost::system::error_code error;
  stream.socket().shutdown(asio::ip::tcp::socket::shutdown_send, error);
  stream.expires_after(std::chrono::seconds(2));
  std::array<char, 16384> away;
  size_t total = 0;
  while (!error && total < kMost) {
    total += co_await stream.async_read_some(asio::buffer(away),
                                             asio::redirect_error(asio::use_awaitable, error));
  }
  stream.close();
}

}  // namespace normlab::http
