#include "server/rpc/watch_stream.h"

#include <grpc/grpc.h>

#include <cstring>
#include <utility>

namespace normlab::rpc {
namespace {

using std::chrono::steady_clock;

constexpr char kStalled[] =
    "nothing was taken from this stream for too long; come back with the latest resume token";

// The field resume_token by itself, as protobuf encodes it.
std::string EncodeToken(const std::string& token) {
  constexpr uint32_t kLengthDelimited = 2;
  std::string field(
      1, static_cast<char>(v1::WatchRunsResponse::kResumeTokenFieldNumber << 3 | kLengthDelimited));
  size_t size = token.size();
  for (; size >= 0x80; size >>= 7) field.push_back(static_cast<char>(size | 0x80));
  field.push_back(static_cast<char>(size));
  return field + token;
}

// The shared encoding of the event, followed by the one field that differs between watchers:
// concatenated messages are one message.
grpc::ByteBuffer Encode(const app::WatchedEvent& watched) {
  const std::string& event = watched.event->binary();
  const std::string token = watched.resume_token.empty() ? "" : EncodeToken(watched.resume_token);
  grpc_slice bytes = grpc_slice_malloc(event.size() + token.size());
  std::memcpy(GRPC_SLICE_START_PTR(bytes), event.data(), event.size());
  std::memcpy(GRPC_SLICE_START_PTR(bytes) + event.size(), token.data(), token.size());
  const grpc::Slice slice(bytes, grpc::Slice::STEAL_REF);
  return grpc::ByteBuffer(&slice, 1);
}

std::optional<v1::WatchRunsRequest> Decode(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  v1::WatchRunsRequest request;
  if (!buffer.Dump(&slices).ok()) return std::nullopt;
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  if (!request.ParseFromString(bytes)) return std::nullopt;
  return request;
}

}  // namespace

WatchStream::WatchStream(app::Api& api, WatchLoop& loop) : api_(api), loop_(loop) {
  context_.AsyncNotifyWhenDone(&done_);
}

void WatchStream::Accept() {
  loop_.accept_(&context_, &request_, &writer_, loop_.queue_.get(), &accepted_);
}

void WatchStream::OnAccepted(bool ok) {
  if (!ok) {  // the server is shut down; gRPC will not say that the call is done
    gone_ = true;
    return;
  }
  loop_.AcceptNext();
  connection_ = context_.peer();
  last_write_ = steady_clock::now();
  api_.Post(
      [self = shared_from_this(), caller = CallerOf(context_)] { self->Hand(self->Open(caller)); });
}

WatchStream::Answer WatchStream::Open(const Caller& caller) {
  const absl::StatusOr<app::Principal> principal = api_.Authenticate(caller.token, caller.origin);
  if (!principal.ok()) return {nullptr, principal.status()};
  const std::optional<v1::WatchRunsRequest> request = Decode(request_);
  if (!request) return {nullptr, absl::InvalidArgumentError("the request cannot be read")};
  absl::StatusOr<std::unique_ptr<app::Watch>> watch = api_.WatchRuns(*principal, *request);
  if (!watch.ok()) return {nullptr, watch.status()};
  (*watch)->OnReady([weak = weak_from_this()] {
    if (const std::shared_ptr<WatchStream> self = weak.lock()) self->Wake();
  });
  ready_ = true;
  return {*std::move(watch), std::vector<app::WatchedEvent>()};
}

void WatchStream::Hand(Answer answer) {
  {
    MutexLock lock(mutex_);
    answer_ = std::move(answer);
  }
  Ring();
}

// Under the hub's lock: nothing here may wait.
void WatchStream::Wake() {
  if (!ready_.exchange(true)) Ring();
}

void WatchStream::Ring() {
  if (!rung_.exchange(true)) loop_.Ring(shared_from_this());
}

void WatchStream::Turn() {
  rung_ = false;
  TakeAnswer();
  Advance();
}

void WatchStream::TakeAnswer() {
  MutexLock lock(mutex_);
  if (!answer_) return;
  away_ = false;
  if (answer_->watch) watch_ = std::move(answer_->watch);
  if (answer_->events.ok()) {
    Take(*std::move(answer_->events));
  } else {
    error_ = answer_->events.status();
  }
  answer_.reset();
}

void WatchStream::Take(std::vector<app::WatchedEvent> events) {
  for (app::WatchedEvent& event : events) outgoing_.push_back(std::move(event));
  more_ = watch_->more();
}

void WatchStream::OnWritten(bool ok) {
  writing_ = false;
  if (!ok) broken_ = true;
  // What was published meanwhile is written in the next round.
  const bool has_more = more_ || !outgoing_.empty() || !error_.ok() || watch_->finished();
  if (ready_ && !has_more && !broken_ && !ending_) return Ring();
  Advance();
}

void WatchStream::OnFinished(bool) {
  finish_ended_ = true;
  LeaveIfOver();
}

void WatchStream::OnDone(bool) {
  call_done_ = true;
  if (context_.IsCancelled()) broken_ = true;
  Advance();
}

// Does the next thing there is to do.
void WatchStream::Advance() {
  if (finishing_ || away_ || writing_) return LeaveIfOver();
  if (broken_) return LeaveIfOver();
  if (ending_) {
    return Finish({grpc::StatusCode::UNAVAILABLE, "the server is stopping; come back"});
  }
  if (outgoing_.empty() && error_.ok() && (ready_ || more_)) Gather();
  if (away_) return;
  if (!outgoing_.empty()) return WriteNext();
  if (!error_.ok()) return Finish(ToGrpc(error_));
  if (watch_->finished()) Finish(grpc::Status::OK);
}

void WatchStream::Gather() {
  while (outgoing_.empty() && (ready_ || more_)) {
    ready_ = false;
    std::optional<std::vector<app::WatchedEvent>> events = watch_->NextLive();
    if (!events) return ReadDatabase();
    Take(*std::move(events));
  }
}

void WatchStream::ReadDatabase() {
  away_ = true;
  api_.PostRead([self = shared_from_this()] { self->Hand({nullptr, self->watch_->Next()}); });
}

void WatchStream::WriteNext() {
  const grpc::ByteBuffer message = Encode(outgoing_.front());
  outgoing_.pop_front();
  writing_ = true;
  last_write_ = steady_clock::now();
  writer_.Write(message, &written_);
}

void WatchStream::Tick(WatchLoop::Time now) {
  if (!watch_ || finishing_ || broken_ || away_) return;
  const auto since = now - last_write_;
  if (writing_ && since >= loop_.limits_.stall_timeout) Detach();
  if (writing_ || since < loop_.limits_.heartbeat) return;
  v1::WatchRunsResponse heartbeat;
  heartbeat.mutable_heartbeat();
  outgoing_.push_back({std::make_shared<domain::Event>(0, "", std::move(heartbeat)), ""});
  Advance();
}

// Trailers would wait behind the message that the client does not take; a cancellation does not.
void WatchStream::Detach() {
  broken_ = true;
  outgoing_.clear();
  api_.NoteStalled(connection_);
  grpc_call_cancel_with_status(context_.c_call(), GRPC_STATUS_ABORTED, kStalled, nullptr);
}

void WatchStream::Finish(const grpc::Status& status) {
  finishing_ = true;
  outgoing_.clear();
  writer_.Finish(status, &finished_);
}

// The bell is rung under the hub's lock and takes a reference for the moment: were that the last
// one, the watch would die in there and wait for the same lock. So the bell is taken away first.
void WatchStream::LeaveIfOver() {
  if (!call_done_ || writing_ || away_ || finishing_ != finish_ended_) return;
  if (watch_) watch_->OnReady(nullptr);
  gone_ = true;
}

}  // namespace normlab::rpc
