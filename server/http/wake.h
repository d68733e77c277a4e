// A bell that any thread may ring and the socket thread hears.
#ifndef NORMLAB_SERVER_HTTP_WAKE_H_
#define NORMLAB_SERVER_HTTP_WAKE_H_

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "boost/asio/io_context.hpp"
#include "boost/asio/post.hpp"

namespace normlab::http {

// Owned by shared_ptr: whoever rings may come late, when the listener has long gone.
class Wake : public std::enable_shared_from_this<Wake> {
 public:
  Wake(std::shared_ptr<boost::asio::io_context> io, std::function<void()> heard)
      : io_(std::move(io)), heard_(std::move(heard)) {}

  // Any thread. However often it rings before it is heard, it is heard once.
  void Ring() {
    const std::lock_guard lock(mutex_);
    if (rung_ || !heard_) return;
    rung_ = true;
    boost::asio::post(*io_, [self = shared_from_this()] { self->Hear(); });
  }

  // Socket thread: nothing is heard, and nothing posted, from now on.
  void Mute() {
    const std::lock_guard lock(mutex_);
    heard_ = nullptr;
  }

 private:
  void Hear() {
    std::function<void()> heard;
    {
      const std::lock_guard lock(mutex_);
      rung_ = false;
      heard = heard_;
    }
    if (heard) heard();
  }

  const std::shared_ptr<boost::asio::io_context> io_;
  std::mutex mutex_;
  std::function<void()> heard_;  // guarded by mutex_
  bool rung_ = false;            // guarded by mutex_
};

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_WAKE_H_
