// One WatchRuns stream: never more than one write under way; what is written next is read from the
// watch only then, so a slow client costs no more memory here than one message. A client that takes
// nothing for WatchLimits::stall_timeout is detached with ABORTED and comes back with its token.
#ifndef NORMLAB_SERVER_RPC_WATCH_STREAM_H_
#define NORMLAB_SERVER_RPC_WATCH_STREAM_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/async_stream.h>

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/app/api.h"
#include "server/base/mutex.h"
#include "server/rpc/status.h"
#include "server/rpc/watch_loop.h"

namespace normlab::rpc {

// Belongs to the loop's thread; what the pool and the hub do says so.
class WatchStream : public std::enable_shared_from_this<WatchStream> {
 public:
  // Something that gRPC was asked for; its address is the tag by which the loop hears of the end.
  struct Operation {
    WatchStream* stream;
    void (WatchStream::*ended)(bool ok);
  };

  WatchStream(app::Api& api, WatchLoop& loop);

  // Waits for a call.
  void Accept();
  // Takes what the pool has read, and does what there is to do next.
  void Turn();
  // A look at the clock, every now and then.
  void Tick(WatchLoop::Time now);
  // Ends the stream, in the next turn, because the server stops.
  void End() { ending_ = true; }
  // Nothing will call this any more.
  bool gone() const { return gone_; }
  bool writing() const { return writing_; }
  // The client's address and port; empty before there is a call.
  const std::string& connection() const { return connection_; }

 private:
  // What the pool hands over.
  struct Answer {
    std::unique_ptr<app::Watch> watch;  // of Open
    absl::StatusOr<std::vector<app::WatchedEvent>> events;
  };

  void OnAccepted(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool ok);
  void OnDone(bool ok);

  Answer Open(const Caller& caller);                     // pool
  void Hand(Answer answer) ABSL_LOCKS_EXCLUDED(mutex_);  // pool
  void Wake();                                           // rung by the hub
  void Ring();                                           // any thread
  void TakeAnswer() ABSL_LOCKS_EXCLUDED(mutex_);

  void Advance();
  void Gather();
  void ReadDatabase();
  void Take(std::vector<app::WatchedEvent> events);
  void WriteNext();
  void Detach();
  void Finish(const grpc::Status& status);
  void LeaveIfOver();

  app::Api& api_;
  WatchLoop& loop_;
  grpc::ServerContext context_;
  std::string connection_;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer_{&context_};
  Operation accepted_{this, &WatchStream::OnAccepted}, written_{this, &WatchStream::OnWritten},
      finished_{this, &WatchStream::OnFinished}, done_{this, &WatchStream::OnDone};

  std::atomic<bool> ready_ = false;  // the bell was rung
  std::atomic<bool> rung_ = false;   // a turn in a round is due
  Mutex mutex_;
  std::optional<Answer> answer_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<app::Watch> watch_;
  std::deque<app::WatchedEvent> outgoing_;
  absl::Status error_;
  WatchLoop::Time last_write_;
  bool more_ = false;  // the watch has more already
  bool away_ = true;   // the watch is not open yet, or with the pool
  bool writing_ = false;
  bool broken_ = false;     // the client is gone, or detached
  bool ending_ = false;     // the server stops
  bool finishing_ = false;  // Finish was called
  bool finish_ended_ = false;
  bool call_done_ = false;  // gRPC has no more to say
  bool gone_ = false;
};

}  // namespace normlab::rpc

#endif  // NORMLAB_SERVER_RPC_WATCH_STREAM_H_
