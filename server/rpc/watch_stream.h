// One WatchRuns stream: never more than one write under way; what is written next is read from the
// watch only then, so a slow client costs no memory here.
#ifndef NORMLAB_SERVER_RPC_WATCH_STREAM_H_
#define NORMLAB_SERVER_RPC_WATCH_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "server/app/api.h"
#include "server/base/mutex.h"

namespace normlab::rpc {

class WatchStream;

// The living streams: gives each a heartbeat when nothing was written for 15 s, and ends them all
// when the server stops.
class WatchRegistry {
 public:
  WatchRegistry();
  ~WatchRegistry();
  void Add(std::shared_ptr<WatchStream> stream) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(const std::shared_ptr<WatchStream>& stream) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends every stream with UNAVAILABLE: a client comes back with its token.
  void EndAll() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Loop();
  std::set<std::shared_ptr<WatchStream>> Streams() ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  CondVar stopped_;
  std::set<std::shared_ptr<WatchStream>> streams_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// `request` is a serialized WatchRunsRequest. The reactor deletes itself.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartWatchStream(app::Api& api,
                                                             WatchRegistry& registry,
                                                             std::string token,
                                                             const grpc::ByteBuffer& request);

}  // namespace normlab::rpc

#endif  // NORMLAB_SERVER_RPC_WATCH_STREAM_H_
