#include "server/rpc/worker_service.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/base/log.h"
#include "server/base/mutex.h"
#include "server/base/strings.h"
#include "server/rpc/pieces.h"
#include "server/rpc/status.h"

namespace normlab::rpc {
namespace {

using worker::v1::AttachRequest;
using worker::v1::AttachResponse;
using worker::v1::Hello;
using worker::v1::RecordBatch;

// Pieces of work handed to the writer and not yet stored: one being written, one behind it.
constexpr int kMaxOutstanding = 2;
// Records that may wait here, in pieces that grow meanwhile: a trainer sends a record at a time as
// long as the connection takes it. What is beyond that waits in the trainer's spool.
constexpr int64_t kMaxWaitingBytes = 64 << 10;

// One trainer's stream. Reads go on while earlier records are being stored; acknowledgements that
// pile up during a write become one. Everything is under mutex_.
class Session : public grpc::ServerBidiReactor<AttachRequest, AttachResponse>,
                public std::enable_shared_from_this<Session> {
 public:
  Session(app::Dispatcher& dispatcher, storage::Store& store, app::Pool& pool)
      : dispatcher_(dispatcher), store_(store), pool_(pool) {}

  void Start() {
    MutexLock lock(mutex_);
    self_ = shared_from_this();
    Read();
  }

  void OnReadDone(bool ok) override {
    MutexLock lock(mutex_);
    reading_ = false;
    if (!ok) {
      closed_ = true;
    } else if (request_.has_hello() && !greeted_) {
      greeted_ = true;
      pool_.Post([self = shared_from_this(), hello = request_.hello()] { self->Greet(hello); });
    } else if (request_.has_records() && attempt_id_ != 0) {
      TakeRecords();
    } else {
      Fail(absl::InvalidArgumentError("hello comes first and once, then records"));
    }
    Advance();
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mutex_);
    writing_ = false;
    if (!ok) closed_ = true;
    Advance();
  }

  void OnCancel() override {
    MutexLock lock(mutex_);
    closed_ = true;
    Advance();
  }

  void OnDone() override {
    std::shared_ptr<Session> self;
    int64_t attempt = 0;
    {
      MutexLock lock(mutex_);
      self = std::move(self_);
      attempt = attempt_id_;
    }
    if (attempt != 0) LogInfo("trainer detached", {{"run", run_}});
  }

 private:
  void Greet(const Hello& hello) {
    const auto tell = [weak = weak_from_this()](bool Session::*wanted) {
      return [weak, wanted] {
        const std::shared_ptr<Session> self = weak.lock();
        return self != nullptr && self->Want(wanted);
      };
    };
    absl::StatusOr<app::Dispatcher::Attached> attached =
        dispatcher_.Attach(hello.run(), hello.attempt(), hello.token(),
                           {.stop = tell(&Session::stop_wanted_),
                            .pause = tell(&Session::pause_wanted_),
                            .probe = tell(&Session::probe_wanted_)});
    MutexLock lock(mutex_);
    if (!attached.ok()) {
      LogWarning("trainer turned away",
                 {{"run", hello.run()}, {"reason", std::string(attached.status().message())}});
      Fail(attached.status());
      return Advance();
    }
    LogInfo("trainer attached", {{"run", hello.run()},
                                 {"attempt", StrCat(hello.attempt())},
                                 {"pid", StrCat(hello.pid())},
                                 {"engine", hello.engine_version()},
                                 {"stored", StrCat(attached->assignment.persisted_sequence())}});
    run_ = hello.run();
    attempt_id_ = attached->attempt_id;
    acked_ = stored_ = attached->assignment.persisted_sequence();
    AttachResponse response;
    *response.mutable_assignment() = std::move(attached->assignment);
    first_ = std::move(response);
    Advance();
  }

  void TakeRecords() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    RecordBatch& batch = *request_.mutable_records();
    if (batch.records_size() == 0 || batch.first_sequence() == 0) {
      return Fail(absl::InvalidArgumentError("a batch needs records and a first sequence above 0"));
    }
    waiting_.Add(batch);
  }

  void StoreNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Piece piece = waiting_.Take();
    const uint64_t last = piece.last();
    const storage::Load load = {piece.rows(), /*bulk=*/true};
    ++outstanding_;
    store_.writer().Submit(
        [this, self = shared_from_this(), attempt = attempt_id_, first = piece.first,
         records = std::move(piece.records)](storage::WriteContext& context) {
          return store_.attempt_log().Append(context, attempt, first, records);
        },
        [self = shared_from_this(), last](const absl::Status& status) {
          self->Stored(last, status);
        },
        load);
  }

  // On the writer's thread.
  void Stored(uint64_t last, const absl::Status& status) {
    MutexLock lock(mutex_);
    --outstanding_;
    if (status.ok()) {
      stored_ = std::max(stored_, last);
    } else {
      // The trainer keeps what was not acknowledged and comes back with it.
      Fail(status);
    }
    Advance();
  }

  // False when nothing can be said to the trainer any more.
  bool Want(bool Session::*wanted) {
    MutexLock lock(mutex_);
    this->*wanted = true;
    Advance();
    return !closed_ && error_.ok();
  }

  void Fail(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (error_.ok()) error_ = status;
  }

  // Does whatever can be done next.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_) return;
    if (!writing_) {
      if (closed_ || !error_.ok()) {
        finished_ = true;
        return Finish(ToGrpc(error_));
      }
      WriteNext();
    }
    if (!error_.ok()) return;
    while (!waiting_.empty() && outstanding_ < kMaxOutstanding) StoreNext();
    // The next request may be read once the one at hand was taken over: a hello is, when the
    // assignment has been made.
    const bool ready = !greeted_ || attempt_id_ != 0;
    if (ready && !reading_ && !closed_ && waiting_.bytes() < kMaxWaitingBytes) Read();
  }

  void Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    reading_ = true;
    StartRead(&request_);
  }

  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    response_.Clear();
    if (first_) {
      response_ = *std::exchange(first_, std::nullopt);
    } else if (attempt_id_ != 0 && stop_wanted_ && !stop_sent_) {
      stop_sent_ = true;
      response_.mutable_stop();
    } else if (attempt_id_ != 0 && pause_wanted_ && !pause_sent_) {
      pause_sent_ = true;
      response_.mutable_pause();
    } else if (attempt_id_ != 0 && probe_wanted_) {
      probe_wanted_ = false;  // unlike the others it may be wanted again
      response_.mutable_probe();
    } else if (stored_ > acked_) {
      acked_ = stored_;
      response_.mutable_ack()->set_sequence(acked_);
    } else {
      return;
    }
    writing_ = true;
    StartWrite(&response_);
  }

  app::Dispatcher& dispatcher_;
  storage::Store& store_;
  app::Pool& pool_;
  Mutex mutex_;
  std::shared_ptr<Session> self_ ABSL_GUARDED_BY(mutex_);  // until gRPC is done with this
  AttachRequest request_;
  AttachResponse response_;
  std::optional<AttachResponse> first_ ABSL_GUARDED_BY(mutex_);
  std::string run_;
  int64_t attempt_id_ ABSL_GUARDED_BY(mutex_) = 0;
  Pieces waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t stored_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t acked_ ABSL_GUARDED_BY(mutex_) = 0;
  int outstanding_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  bool greeted_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;  // the trainer is gone or has no more to say
  bool stop_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_sent_ ABSL_GUARDED_BY(mutex_) = false;
  bool pause_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  bool pause_sent_ ABSL_GUARDED_BY(mutex_) = false;
  bool probe_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerBidiReactor<AttachRequest, AttachResponse>* WorkerService::Attach(
    grpc::CallbackServerContext*) {
  auto session = std::make_shared<Session>(dispatcher_, store_, pool_);
  session->Start();
  return session.get();
}

}  // namespace normlab::rpc
