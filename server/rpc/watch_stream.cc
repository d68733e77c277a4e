#include "server/rpc/watch_stream.h"

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "server/rpc/status.h"

namespace normlab::rpc {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kHeartbeat(15);
constexpr std::chrono::seconds kTick(1);

// The shared encoding of the event, followed by the one field that differs between watchers:
// concatenated messages are one message.
grpc::ByteBuffer Encode(const app::WatchedEvent& watched) {
  std::vector<grpc::Slice> slices;
  slices.emplace_back(watched.event->binary());
  if (!watched.resume_token.empty()) {
    v1::WatchRunsResponse token;
    token.set_resume_token(watched.resume_token);
    slices.emplace_back(token.SerializeAsString());
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
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

// States: starting (no watch yet), then pumping (asking the watch for more on the pool) or writing
// or idle, then finished. Everything is under mutex_; gRPC is called with it held, which is allowed
// as reactions come from other threads.
class WatchStream : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                    public std::enable_shared_from_this<WatchStream> {
 public:
  WatchStream(app::Api& api, WatchRegistry& registry) : api_(api), registry_(registry) {}

  void Start(std::string token, std::optional<v1::WatchRunsRequest> request) {
    self_ = shared_from_this();
    registry_.Add(self_);
    api_.Post([self = self_, token = std::move(token), request = std::move(request)] {
      self->Open(token, request);
    });
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mutex_);
    writing_ = false;
    if (!ok) broken_ = true;
    Advance();
  }

  void OnCancel() override {
    MutexLock lock(mutex_);
    broken_ = true;
    Advance();
  }

  void OnDone() override {
    std::shared_ptr<WatchStream> self;
    {
      MutexLock lock(mutex_);
      self = std::move(self_);
    }
    registry_.Remove(self);
    // The bell is rung under the hub's lock and takes a reference for the moment: were that the
    // last one, the watch would die in there and wait for the same lock. So the bell is taken away
    // first, by one who holds a reference himself.
    api_.Post([self = std::move(self)] {
      if (self->watch_) self->watch_->OnReady(nullptr);
    });
  }

  void Tick(steady_clock::time_point now) {
    MutexLock lock(mutex_);
    if (!watch_ || finished_ || pumping_ || writing_ || now - last_write_ < kHeartbeat) return;
    v1::WatchRunsResponse heartbeat;
    heartbeat.mutable_heartbeat();
    outgoing_.push_back({std::make_shared<domain::Event>(0, "", std::move(heartbeat)), ""});
    Advance();
  }

  void End() {
    MutexLock lock(mutex_);
    ending_ = true;
    Advance();
  }

 private:
  void Open(const std::string& token, const std::optional<v1::WatchRunsRequest>& request) {
    absl::Status status;
    std::unique_ptr<app::Watch> watch;
    const absl::StatusOr<app::Principal> principal = api_.Authenticate(token);
    if (!principal.ok()) {
      status = principal.status();
    } else if (!request) {
      status = absl::InvalidArgumentError("the request cannot be read");
    } else {
      absl::StatusOr<std::unique_ptr<app::Watch>> made = api_.WatchRuns(*principal, *request);
      status = made.status();
      if (made.ok()) watch = *std::move(made);
    }
    if (watch) {
      watch->OnReady([weak = weak_from_this()] {
        if (const std::shared_ptr<WatchStream> self = weak.lock()) self->Wake();
      });
    }
    MutexLock lock(mutex_);
    starting_ = false;
    watch_ = std::move(watch);
    if (!status.ok()) error_ = status;
    ready_ = true;
    last_write_ = steady_clock::now();
    Advance();
  }

  // Rung under the hub's lock: nothing here may wait.
  void Wake() {
    if (ready_.exchange(true)) return;
    api_.Post([self = shared_from_this()] {
      MutexLock lock(self->mutex_);
      self->Advance();
    });
  }

  // Does the next thing there is to do.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_ || starting_ || pumping_ || writing_) return;
    if (broken_) return FinishWith(grpc::Status::CANCELLED);
    if (ending_) {
      return FinishWith({grpc::StatusCode::UNAVAILABLE, "the server is stopping; come back"});
    }
    if (!outgoing_.empty()) return WriteNext();
    if (!error_.ok()) return FinishWith(ToGrpc(error_));
    if (watch_->finished()) return FinishWith(grpc::Status::OK);
    if (!ready_) return;
    ready_ = false;
    pumping_ = true;
    api_.Post([self = shared_from_this()] { self->Pump(); });
  }

  void Pump() {
    // Only the pump touches the watch, and there is one at a time.
    absl::StatusOr<std::vector<app::WatchedEvent>> events = watch_->Next();
    MutexLock lock(mutex_);
    pumping_ = false;
    if (events.ok()) {
      for (app::WatchedEvent& event : *events) outgoing_.push_back(std::move(event));
      if (!events->empty()) ready_ = true;  // perhaps there is more
    } else {
      error_ = events.status();
    }
    Advance();
  }

  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    current_ = Encode(outgoing_.front());
    outgoing_.pop_front();
    writing_ = true;
    last_write_ = steady_clock::now();
    StartWrite(&current_);
  }

  void FinishWith(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    finished_ = true;
    outgoing_.clear();
    Finish(status);
  }

  app::Api& api_;
  WatchRegistry& registry_;
  std::atomic<bool> ready_ = false;  // the watch may have more
  Mutex mutex_;
  std::shared_ptr<WatchStream> self_ ABSL_GUARDED_BY(mutex_);  // until gRPC is done with this
  std::unique_ptr<app::Watch> watch_;                          // set once, used by the pump
  std::deque<app::WatchedEvent> outgoing_ ABSL_GUARDED_BY(mutex_);
  grpc::ByteBuffer current_;  // being written
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  steady_clock::time_point last_write_ ABSL_GUARDED_BY(mutex_);
  bool starting_ ABSL_GUARDED_BY(mutex_) = true;
  bool pumping_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;    // the client is gone
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;    // the server stops
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;  // Finish was called
};

WatchRegistry::WatchRegistry() : thread_([this] { Loop(); }) {}

WatchRegistry::~WatchRegistry() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    stopped_.NotifyAll();
  }
  thread_.join();
}

void WatchRegistry::Add(std::shared_ptr<WatchStream> stream) {
  MutexLock lock(mutex_);
  streams_.insert(std::move(stream));
}

void WatchRegistry::Remove(const std::shared_ptr<WatchStream>& stream) {
  MutexLock lock(mutex_);
  streams_.erase(stream);
}

std::set<std::shared_ptr<WatchStream>> WatchRegistry::Streams() {
  MutexLock lock(mutex_);
  return streams_;
}

void WatchRegistry::EndAll() {
  for (const std::shared_ptr<WatchStream>& stream : Streams()) stream->End();
}

void WatchRegistry::Loop() {
  while (true) {
    {
      MutexLock lock(mutex_);
      if (!stopping_) stopped_.WaitFor(mutex_, kTick);
      if (stopping_) return;
    }
    const auto now = steady_clock::now();
    for (const std::shared_ptr<WatchStream>& stream : Streams()) stream->Tick(now);
  }
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartWatchStream(app::Api& api,
                                                             WatchRegistry& registry,
                                                             std::string token,
                                                             const grpc::ByteBuffer& request) {
  auto stream = std::make_shared<WatchStream>(api, registry);
  stream->Start(std::move(token), Decode(request));
  return stream.get();
}

}  // namespace normlab::rpc
