// One thing that happened to a run, as watchers see it.
#ifndef NORMLAB_SERVER_DOMAIN_EVENT_H_
#define NORMLAB_SERVER_DOMAIN_EVENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "normlab/v1/run_service.pb.h"

namespace normlab::domain {

// Immutable once made, so that the thousand watchers of a run share it from any thread. Its
// encodings are made at most once each, by whoever needs one first.
class Event {
 public:
  // `sequence` is that of the write which made it; several events may share one. `message` has no
  // resume token: that differs between watchers.
  Event(uint64_t sequence, std::string run, v1::WatchRunsResponse message)
      : Event(sequence, sequence, std::move(run), std::move(message)) {}
  // One that stands for all points of a run from the write `first_sequence` on.
  Event(uint64_t first_sequence, uint64_t sequence, std::string run, v1::WatchRunsResponse message)
      : first_sequence_(first_sequence),
        sequence_(sequence),
        run_(std::move(run)),
        message_(std::move(message)),
        bytes_(message_.ByteSizeLong()) {}

  uint64_t first_sequence() const { return first_sequence_; }
  uint64_t sequence() const { return sequence_; }
  const std::string& run() const { return run_; }
  const v1::WatchRunsResponse& message() const { return message_; }

  // Of the message in binary form: about what it takes in memory, too.
  size_t bytes() const { return bytes_; }

  // The message in protobuf's binary form.
  const std::string& binary() const {
    std::call_once(binary_once_, [this] { binary_ = message_.SerializeAsString(); });
    return binary_;
  }
  // The message as a server-sent event's `event:` and `data:` lines, by the one encoder there is.
  const std::string& text(
      const std::function<std::string(const v1::WatchRunsResponse&)>& encode) const {
    std::call_once(text_once_, [&] { text_ = encode(message_); });
    return text_;
  }

 private:
  const uint64_t first_sequence_;
  const uint64_t sequence_;
  const std::string run_;
  const v1::WatchRunsResponse message_;
  const size_t bytes_;
  mutable std::once_flag binary_once_, text_once_;
  mutable std::string binary_, text_;
};

using EventPtr = std::shared_ptr<const Event>;

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_EVENT_H_
