#include "client/watch_stream.h"

#include <algorithm>
#include <utility>

namespace normlab::client {
namespace {

using normlab::v1::WatchRunsResponse;
using std::chrono::milliseconds;

constexpr size_t kQueueLimit = 1024;
constexpr milliseconds kFirstBackoff{100};
constexpr milliseconds kLongestBackoff{1000};

// A restart looks like one of these, depending on the moment.
bool MayPass(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kCancelled:
      return true;
    default:
      return false;
  }
}

}  // namespace

WatchStream::WatchStream(Connect connect, normlab::v1::WatchRunsRequest request,
                         milliseconds patience)
    : connect_(std::move(connect)),
      patience_(patience),
      request_(std::move(request)),
      reader_([this] { Run(); }) {}

WatchStream::~WatchStream() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }
  changed_.notify_all();
  reader_.join();
}

WatchStream::Result WatchStream::Next(milliseconds timeout, WatchRunsResponse& event) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, timeout, [this] { return !queue_.empty() || ended_; });
  if (!queue_.empty()) {
    event = std::move(queue_.front());
    queue_.pop_front();
    changed_.notify_all();
    return kEvent;
  }
  return ended_ ? kEnd : kNothing;
}

absl::Status WatchStream::status() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

std::optional<std::chrono::steady_clock::time_point> WatchStream::lost_since() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return lost_since_;
}

void WatchStream::Run() {
  absl::Status status;
  do {
    status = ReadOnce();
  } while (WaitToRetry(status));
  std::lock_guard<std::mutex> lock(mutex_);
  status_ = status;
  ended_ = true;
  changed_.notify_all();
}

absl::Status WatchStream::ReadOnce() {
  absl::StatusOr<std::unique_ptr<ApiClient>> client = connect_();
  if (!client.ok()) return client.status();
  grpc::ClientContext context;
  (*client)->Prepare(context);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return absl::CancelledError();
    context_ = &context;
  }
  const auto reader = (*client)->runs().WatchRuns(&context, request_);
  WatchRunsResponse event;
  while (reader->Read(&event)) {
    const std::string token = event.resume_token();
    if (seen_.Keep(event) && !Push(std::move(event))) break;
    // Only once the event is ours: the token says that everything up to it was seen.
    if (!token.empty()) request_.set_resume_token(token);
    event.Clear();
  }
  const grpc::Status status = reader->Finish();
  std::lock_guard<std::mutex> lock(mutex_);
  context_ = nullptr;
  return FromGrpc(status);
}

bool WatchStream::Push(WatchRunsResponse event) {
  std::unique_lock<std::mutex> lock(mutex_);
  lost_since_.reset();
  backoff_ = milliseconds(0);
  changed_.wait(lock, [this] { return queue_.size() < kQueueLimit || stopping_; });
  if (stopping_) return false;
  queue_.push_back(std::move(event));
  changed_.notify_all();
  return true;
}

bool WatchStream::WaitToRetry(const absl::Status& status) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (stopping_ || !MayPass(status)) return false;
  const auto now = std::chrono::steady_clock::now();
  if (!lost_since_) lost_since_ = now;
  if (now - *lost_since_ > patience_) return false;
  backoff_ = std::clamp(backoff_ * 2, kFirstBackoff, kLongestBackoff);
  changed_.wait_for(lock, backoff_, [this] { return stopping_; });
  return !stopping_;
}

}  // namespace normlab::client
