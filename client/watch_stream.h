// The events of a watch, without gap or duplicate across restarts of the server.
//
//   WatchStream stream(connect, request);
//   while (stream.Next(std::chrono::milliseconds(100), event) != WatchStream::kEnd) ...
//
// A thread of its own reads the stream into a bounded queue. When the stream breaks it connects
// again (finding the server anew: its socket and token may have changed) and goes on from the last
// resume token, until `patience` has passed without a connection.
#ifndef NORMLAB_CLIENT_WATCH_STREAM_H_
#define NORMLAB_CLIENT_WATCH_STREAM_H_

#include <grpcpp/client_context.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/api_client.h"
#include "client/seen_points.h"
#include "normlab/v1/run_service.pb.h"

namespace normlab::client {

class WatchStream {
 public:
  using Connect = std::function<absl::StatusOr<std::unique_ptr<ApiClient>>()>;
  enum Result {
    kEvent,    // `event` is filled
    kNothing,  // nothing came within the timeout
    kEnd       // the stream is over; status() says why
  };

  WatchStream(Connect connect, normlab::v1::WatchRunsRequest request,
              std::chrono::milliseconds patience = std::chrono::minutes(10));
  ~WatchStream();
  WatchStream(const WatchStream&) = delete;
  WatchStream& operator=(const WatchStream&) = delete;

  Result Next(std::chrono::milliseconds timeout, normlab::v1::WatchRunsResponse& event);

  // After kEnd: OK when every watched run has ended.
  absl::Status status() const;

  // Since when the server has not been reachable; nothing while it is.
  std::optional<std::chrono::steady_clock::time_point> lost_since() const;

 private:
  void Run();
  // One connection, until it breaks or ends. OK when the server ended the stream.
  absl::Status ReadOnce();
  bool Push(normlab::v1::WatchRunsResponse event);
  // Whether to try again after `status`; waits before.
  bool WaitToRetry(const absl::Status& status);

  const Connect connect_;
  const std::chrono::milliseconds patience_;
  normlab::v1::WatchRunsRequest request_;  // with the latest resume token; only the reader's
  std::chrono::milliseconds backoff_{0};   // only the reader's
  SeenPoints seen_;                        // only the reader's

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<normlab::v1::WatchRunsResponse> queue_;
  grpc::ClientContext* context_ = nullptr;
  bool stopping_ = false;
  bool ended_ = false;
  absl::Status status_;
  std::optional<std::chrono::steady_clock::time_point> lost_since_;

  std::thread reader_;  // last: it uses all of the above
};

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_WATCH_STREAM_H_
