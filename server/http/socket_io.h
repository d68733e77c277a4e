// Writing to a client, and parting from it.
#ifndef NORMLAB_SERVER_HTTP_SOCKET_IO_H_
#define NORMLAB_SERVER_HTTP_SOCKET_IO_H_

#include <chrono>
#include <string>
#include <vector>

#include "boost/asio/awaitable.hpp"
#include "boost/asio/buffer.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/beast/core/tcp_stream.hpp"

namespace normlab::http {

// Writes all of `buffers`, whose text the caller keeps; each 64 KiB of it within `timeout`. False
// when the client is gone.
boost::asio::awaitable<bool> WriteAll(boost::beast::tcp_stream& stream,
                                      std::vector<boost::asio::const_buffer> buffers,
                                      std::chrono::milliseconds timeout);

// "127.0.0.1:40312", or empty when the client is gone.
std::string PeerAddress(const boost::asio::ip::tcp::socket& socket);

// Ends our side and reads away what the client still sends: closing at once would make the kernel
// send a reset, which can overtake the answer. Gives up after two seconds.
boost::asio::awaitable<void> Linger(boost::beast::tcp_stream& stream);

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_SOCKET_IO_H_
