// One connection of a session: from Hello until either side ends it or it breaks.
#ifndef NORMLAB_SERVER_TRAINER_LINK_CONVERSATION_H_
#define NORMLAB_SERVER_TRAINER_LINK_CONVERSATION_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "normlab/worker/v1/worker.grpc.pb.h"
#include "server/base/mutex.h"
#include "server/base/spool.h"

namespace normlab::trainer {

class Conversation {
 public:
  struct Callbacks {
    std::function<void(const worker::v1::Assignment&)> on_assignment;  // once
    std::function<void()> on_stop;
    std::function<void()> on_pause;
    std::function<void()> on_probe;
    std::function<bool()> closing;  // true: take leave; looked at after Spool::Wake
  };

  Conversation(Spool* spool, Callbacks callbacks);

  // Connects to `target` and talks until the end. Returns why it ended; OK when we took leave.
  absl::Status Run(const std::string& target, const worker::v1::Hello& hello,
                   std::chrono::milliseconds connect_timeout);

  // Ends Run soon. Any thread.
  void Cancel() { context_.TryCancel(); }

  // Whether the server gave its assignment. Valid after Run.
  bool assigned() const { return assigned_; }
  // Whether the server stored anything. Valid after Run.
  bool acked() const { return acked_; }

 private:
  using Stream = grpc::ClientReaderWriter<worker::v1::AttachRequest, worker::v1::AttachResponse>;

  absl::Status Talk(const worker::v1::Hello& hello);
  void ReadLoop();
  absl::Status Handle(const worker::v1::AttachResponse& response);
  absl::Status Begin(const worker::v1::Assignment& assignment);
  bool WaitForAssignment();
  bool Ended();
  void SendLoop();
  void TakeLeave();

  Spool* const spool_;
  const Callbacks callbacks_;
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
  Spool::Cursor cursor_;  // set by the reading thread before assigned_, then the sender's

  Mutex mutex_;
  CondVar changed_;
  bool assigned_ = false;                       // written under the mutex
  bool acked_ = false;                          // the reading thread's
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // nothing more will be read
  absl::Status fault_;  // the reading thread's; read after it has been joined
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_LINK_CONVERSATION_H_
