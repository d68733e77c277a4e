#include "server/http/event_stream.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "boost/asio/co_spawn.hpp"
#include "boost/asio/redirect_error.hpp"
#include "boost/asio/use_awaitable.hpp"
#include "boost/beast/core/buffers_suffix.hpp"
#include "boost/beast/core/error.hpp"
#include "fmt/format.h"
#include "server/http/answer.h"
#include "server/http/event_text.h"
#include "server/http/socket_io.h"
#include "spdlog/spdlog.h"

namespace normlab::http {

namespace asio = boost::asio;
namespace beast = boost::beast;

namespace {

// A client that took nothing for the stall timeout may take so many of them to read why it ended.
constexpr int kFarewell = 10;
constexpr char kStalled[] =
    "nothing was taken from this stream for too long; come back with the latest id";

const std::string& TextOf(const app::WatchedEvent& watched) {
  static const std::function<std::string(const v1::WatchRunsResponse&)> encode = EventText;
  return watched.event->text(encode);
}

}  // namespace

EventStream::EventStream(beast::tcp_stream& stream, ServerContext& context,
                         std::unique_ptr<app::Watch> watch, bool chunked)
    : stream_(stream),
      context_(context),
      watch_(std::move(watch)),
      chunked_(chunked),
      peer_(PeerAddress(stream.socket())),
      timer_(stream.get_executor()),
      stall_timer_(stream.get_executor()) {
  wake_ = std::make_shared<Wake>(context_.pool.io(), [this] {
    ready_ = true;
    Rouse();
  });
}

void EventStream::Stop() {
  stopping_ = true;
  Rouse();
  if (stalled_) stream_.cancel();  // who was let go is not waited for
}

asio::awaitable<void> EventStream::Run() {
  Answer answer;
  answer.content_type = "text/event-stream";
  answer.headers.emplace_back("X-Accel-Buffering", "no");
  const std::string head =
      HeadText(answer, chunked_ ? Framing::kChunked : Framing::kClose, /*keep_alive=*/false);
  std::vector<asio::const_buffer> buffers = {asio::buffer(head)};
  boost::system::error_code ignored;
  stream_.socket().set_option(
      asio::socket_base::send_buffer_size(static_cast<int>(context_.options.stall_bytes)), ignored);
  stream_.socket().non_blocking(true, ignored);
  gone_ = !co_await Write(std::move(buffers));

  listening_ = true;
  auto heard = [this](std::exception_ptr) {
    listening_ = false;
    gone_ = true;
    Rouse();
    if (stalled_) stream_.cancel();  // there is nobody to say the last word to
  };
  stream_.expires_never();
  asio::co_spawn(stream_.get_executor(), AwaitHangUp(), std::move(heard));

  if (watch_) watch_->OnReady([wake = wake_] { wake->Ring(); });
  co_await SendEvents();
  wake_->Mute();
  // On the pool, because ending a watch may wait for whoever is publishing.
  auto release = [this]() -> absl::StatusOr<bool> {
    if (watch_) watch_->OnReady(nullptr);
    watch_.reset();
    return true;
  };
  const absl::StatusOr<bool> released = co_await context_.pool.Run(std::move(release));
  if (!released.ok()) {
    spdlog::warn("a watch was not ended: {}", std::string(released.status().message()));
  }
  co_await Finish();
}

absl::StatusOr<EventStream::Batch> EventStream::Next() {
  absl::StatusOr<std::vector<app::WatchedEvent>> events = watch_->Next();
  if (!events.ok()) return events.status();
  // A history is encoded here, off the socket thread.
  for (const app::WatchedEvent& watched : *events) TextOf(watched);
  return Batch{*std::move(events), watch_->finished()};
}

// What is live is at hand, so no thread has to be woken for it.
asio::awaitable<absl::StatusOr<EventStream::Batch>> EventStream::NextBatch() {
  last_read_ = std::chrono::steady_clock::now();
  std::optional<std::vector<app::WatchedEvent>> live = watch_->NextLive();
  if (live) co_return Batch{*std::move(live), watch_->finished()};
  auto next = [this] { return Next(); };
  co_return co_await context_.pool.Run(std::move(next), ApiPool::Lane::kReads);
}

asio::awaitable<void> EventStream::SendEvents() {
  while (!ended()) {
    ready_ = false;  // first, so that no call while Next runs is lost
    const absl::StatusOr<Batch> batch = co_await NextBatch();
    if (!batch.ok()) {
      const std::string frame = ErrorFrame(batch.status());
      co_await SendText(frame);
      co_return;
    }
    co_await SendBatch(*batch);
    if (stalled_) break;
    if (batch->finished) co_return;
    if (!watch_->more()) co_await AwaitEvents();
  }
  if (gone_) co_return;
  const std::string frame =
      ErrorFrame(stalled_ ? absl::AbortedError(kStalled)
                          : absl::UnavailableError("the server is stopping; come back"));
  co_await SendText(frame);
}

asio::awaitable<void> EventStream::AwaitEvents() {
  while (!ended()) {
    const auto due =
        ready_ ? last_read_ + context_.options.round : last_write_ + context_.options.heartbeat;
    if (ready_ && std::chrono::steady_clock::now() >= due) co_return;
    timer_.expires_at(due);
    boost::system::error_code error;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, error));
    if (!error && !ready_ && !ended()) co_await SendText(HeartbeatFrame());
  }
}

// A client says nothing on its stream but that it goes; without this a stream whose client went
// would be found out only by its next write.
asio::awaitable<void> EventStream::AwaitHangUp() {
  std::array<char, 1024> ignored;
  boost::system::error_code error;
  while (!error) {
    co_await stream_.async_read_some(asio::buffer(ignored),
                                     asio::redirect_error(asio::use_awaitable, error));
  }
}

asio::awaitable<void> EventStream::SendBatch(const Batch& batch) {
  constexpr size_t kChunk = 64 * 1024;
  std::vector<std::string> ids;  // the `id:` lines, each followed by a shared text
  ids.reserve(batch.events.size());
  std::vector<asio::const_buffer> frames;
  size_t size = 0;
  for (const app::WatchedEvent& watched : batch.events) {
    if (!watched.resume_token.empty()) {
      ids.push_back(fmt::format("id: {}\n", watched.resume_token));
      frames.push_back(asio::buffer(ids.back()));
    }
    const std::string& text = TextOf(watched);
    frames.push_back(asio::buffer(text));
    frames.push_back(asio::buffer("\n", 1));
    size += text.size();
    if (size < kChunk) continue;
    co_await SendChunk(std::exchange(frames, {}));
    size = 0;
    if (ended()) co_return;
  }
  if (!frames.empty()) co_await SendChunk(std::move(frames));
}

asio::awaitable<void> EventStream::SendText(std::string_view frame) {
  std::vector<asio::const_buffer> frames = {asio::buffer(frame.data(), frame.size())};
  co_await SendChunk(std::move(frames));
}

asio::awaitable<void> EventStream::SendChunk(std::vector<asio::const_buffer> frames) {
  const std::string size = fmt::format("{:x}\r\n", asio::buffer_size(frames));
  if (chunked_) {
    frames.insert(frames.begin(), asio::buffer(size));
    frames.push_back(asio::buffer("\r\n", 2));
  }
  if (gone_) co_return;
  const bool written = co_await Write(std::move(frames));
  gone_ = gone_ || !written;
}

asio::awaitable<bool> EventStream::Write(std::vector<asio::const_buffer> buffers) {
  beast::buffers_suffix<std::vector<asio::const_buffer>> rest(std::move(buffers));
  while (asio::buffer_size(rest) > 0) {
    boost::system::error_code error;
    // Nearly always there is room, and neither a timer nor a wait is needed.
    size_t written = stream_.socket().write_some(rest, error);
    if (error == asio::error::would_block) {
      const auto waits = std::make_shared<bool>(true);  // a timer that fired cannot be taken back
      if (!stalled_) {
        stall_timer_.expires_after(context_.options.stall_timeout);
        stall_timer_.async_wait([this, waits](boost::system::error_code cancelled) {
          if (!cancelled && *waits) LetGo();
        });
      }
      stream_.expires_after(context_.options.stall_timeout * (stalled_ ? 1 : 1 + kFarewell));
      written =
          co_await stream_.async_write_some(rest, asio::redirect_error(asio::use_awaitable, error));
      *waits = false;
      stall_timer_.cancel();
    }
    if (error) co_return false;
    rest.consume(written);
  }
  last_write_ = std::chrono::steady_clock::now();
  co_return true;
}

void EventStream::LetGo() {
  stalled_ = true;
  context_.api.NoteStalled(peer_);
  wake_->Mute();
  // On the pool, as in Run.
  context_.api.Post([watch = std::shared_ptr<app::Watch>(std::move(watch_))] {
    if (watch) watch->OnReady(nullptr);
  });
}

// The last chunk, then the client's turn to close; but it gets only a second for it.
asio::awaitable<void> EventStream::Finish() {
  boost::system::error_code ignored;
  if (!gone_) {
    std::vector<asio::const_buffer> last;
    if (chunked_) last.push_back(asio::buffer("0\r\n\r\n", 5));
    co_await WriteAll(stream_, std::move(last), context_.options.write_timeout);
    stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    timer_.expires_after(std::chrono::seconds(1));
    if (listening_) {
      co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
  }
  stream_.close();
  // The closed socket ends AwaitHangUp, which still refers to us.
  while (listening_) {
    timer_.expires_at(std::chrono::steady_clock::time_point::max());
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

}  // namespace normlab::http
