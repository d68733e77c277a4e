// One answer to GET /api/v1/events, from its head to its end.
//
// It holds a cursor (app::Watch), not a queue: while a write is under way nothing is asked for, so
// a slow client costs one batch of shared events and slows nobody. An idle stream says `heartbeat`.
// It ends when every watched run has ended, when the client goes or, after an `error` event, when
// it takes nothing for too long or the server stops. The client that takes nothing finds that event
// when it reads again: until then, or for ten times as long, its connection stays, but no watch.
#ifndef NORMLAB_SERVER_HTTP_EVENT_STREAM_H_
#define NORMLAB_SERVER_HTTP_EVENT_STREAM_H_

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "boost/asio/awaitable.hpp"
#include "boost/asio/buffer.hpp"
#include "boost/asio/steady_timer.hpp"
#include "boost/beast/core/tcp_stream.hpp"
#include "server/app/api.h"
#include "server/http/server_context.h"
#include "server/http/wake.h"

namespace normlab::http {

// Lives on the socket thread.
class EventStream {
 public:
  // `chunked`: the client speaks HTTP/1.1. Afterwards the connection is closed in either case.
  EventStream(boost::beast::tcp_stream& stream, ServerContext& context,
              std::unique_ptr<app::Watch> watch, bool chunked);

  boost::asio::awaitable<void> Run();
  // Ends the stream after the write in hand.
  void Stop();

 private:
  // What one call of Watch::Next gave.
  struct Batch {
    std::vector<app::WatchedEvent> events;
    bool finished = false;
  };

  absl::StatusOr<Batch> Next();  // on the api's pool
  boost::asio::awaitable<absl::StatusOr<Batch>> NextBatch();
  boost::asio::awaitable<void> SendEvents();
  boost::asio::awaitable<void> AwaitEvents();
  boost::asio::awaitable<void> AwaitHangUp();
  boost::asio::awaitable<void> SendBatch(const Batch& batch);
  boost::asio::awaitable<void> SendText(std::string_view frame);
  // False when the client is gone, or took nothing for too long.
  boost::asio::awaitable<bool> Write(std::vector<boost::asio::const_buffer> buffers);
  // Ends the watch: the client takes nothing. The write under way goes on, so that it reads whole
  // events, and no other but the last word follows.
  void LetGo();
  boost::asio::awaitable<void> SendChunk(std::vector<boost::asio::const_buffer> frames);
  boost::asio::awaitable<void> Finish();

  bool ended() const { return stopping_ || gone_ || stalled_; }
  void Rouse() { timer_.cancel(); }

  boost::beast::tcp_stream& stream_;
  ServerContext& context_;
  std::unique_ptr<app::Watch> watch_;
  const bool chunked_;
  const std::string peer_;  // the client's address
  std::shared_ptr<Wake> wake_;
  boost::asio::steady_timer timer_;  // what the stream sleeps on
  boost::asio::steady_timer stall_timer_;
  std::chrono::steady_clock::time_point last_write_, last_read_;
  bool ready_ = false;      // Next has something, or may have
  bool stopping_ = false;   // the server stops
  bool gone_ = false;       // the client went, or cannot be written to
  bool stalled_ = false;    // it takes nothing and was let go
  bool listening_ = false;  // AwaitHangUp runs and refers to us
};

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_EVENT_STREAM_H_
