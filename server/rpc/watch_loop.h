// The thread that serves all WatchRuns streams.
//
// A thousand watchers of a run have something to write after every commit. With the callback API
// each write ends on another thread, and the two wake each other a thousand times; so these streams
// alone have a completion queue of their own, and one thread that does everything for them but read
// the database. Bells put streams on a list, and the thread goes through the list, connection by
// connection: a round. Rounds begin no closer together than WatchLimits::round; what was published
// meanwhile goes together. The same thread sends heartbeats and detaches readers that take nothing.
#ifndef NORMLAB_SERVER_RPC_WATCH_LOOP_H_
#define NORMLAB_SERVER_RPC_WATCH_LOOP_H_

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "server/app/api.h"
#include "server/base/mutex.h"

namespace normlab::rpc {

class WatchStream;

struct WatchLimits {
  std::chrono::milliseconds heartbeat = std::chrono::seconds(15);  // of an idle stream
  // A message that the client has not taken for so long ends its stream.
  std::chrono::milliseconds stall_timeout = std::chrono::seconds(30);
  std::chrono::milliseconds round = std::chrono::milliseconds(10);
};

class WatchLoop {
 public:
  // Asks gRPC for the next call of WatchRuns; its request is left serialized.
  using Accept = std::function<void(grpc::ServerContext* context, grpc::ByteBuffer* request,
                                    grpc::ServerAsyncWriter<grpc::ByteBuffer>* writer,
                                    grpc::ServerCompletionQueue* queue, void* tag)>;

  WatchLoop(app::Api& api, WatchLimits limits) : api_(api), limits_(limits) {}
  ~WatchLoop() { Stop(); }

  // In this order, from one thread: the service is registered, the queue is added to the builder,
  // the server is started, the loop is started.
  void set_accept(Accept accept) { accept_ = std::move(accept); }
  void set_queue(std::unique_ptr<grpc::ServerCompletionQueue> queue) { queue_ = std::move(queue); }
  void Start();
  // Ends every stream with UNAVAILABLE: clients come back with their tokens. Any thread.
  void EndAll() ABSL_LOCKS_EXCLUDED(mutex_);
  // After the server was shut down. Returns when all streams are gone.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class WatchStream;
  using Streams = std::vector<std::shared_ptr<WatchStream>>;
  using Time = std::chrono::steady_clock::time_point;

  void AcceptNext();
  // Gives the stream a turn in the next round. Any thread, also under other locks; never waits.
  void Ring(std::shared_ptr<WatchStream> stream) ABSL_LOCKS_EXCLUDED(mutex_);
  void WakeUp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void Loop();
  // Waits, at most so long, for an operation to end and takes note of it. False when there will be
  // no other.
  bool AwaitOperation(std::chrono::microseconds wait);
  bool AwaitDeadline() ABSL_LOCKS_EXCLUDED(mutex_);
  Time NextDeadline() ABSL_LOCKS_EXCLUDED(mutex_);
  void BeginRound() ABSL_LOCKS_EXCLUDED(mutex_);
  void Tick(Time now);

  app::Api& api_;
  const WatchLimits limits_;
  Accept accept_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;

  Mutex mutex_;
  Streams rung_ ABSL_GUARDED_BY(mutex_);
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);  // ends a wait of the thread
  bool alarm_set_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;

  // The loop's thread only.
  std::set<std::shared_ptr<WatchStream>> streams_;
  Time round_{}, tick_{};
  bool told_end_ = false;
  std::thread thread_;
};

}  // namespace normlab::rpc

#endif  // NORMLAB_SERVER_RPC_WATCH_LOOP_H_
