// The trainer's side of its attempt's conversation with the server, whatever happens to either.
//
//   Session session(options, &spool);
//   absl::StatusOr<worker::v1::Assignment> assignment = session.WaitForAssignment();
//   ... train; what is appended to the spool is sent, what the server has stored leaves it ...
//   session.Finish(std::chrono::seconds(5));
//
// A thread of its own connects, says Hello, and sends whatever the spool holds beyond what the
// server says it has stored: a batch is whatever has come in while the last one was written. When
// the connection breaks it reads endpoint.json again and starts over, with pauses of 50 ms growing
// to 2 s. It gives up, and asks training to stop, when no server was there for `reattach_grace`
// (then with a checkpoint), or when the server has refused the attempt for `refusal_grace` (a
// server that is just starting may not know its attempts yet).
#ifndef NORMLAB_SERVER_TRAINER_LINK_SESSION_H_
#define NORMLAB_SERVER_TRAINER_LINK_SESSION_H_

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "normlab/worker/v1/worker.pb.h"
#include "server/base/mutex.h"
#include "server/base/spool.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

class Conversation;

struct SessionOptions {
  worker::v1::Hello hello;
  std::filesystem::path endpoint_file;
  std::chrono::milliseconds first_pause{50};
  std::chrono::milliseconds longest_pause{2000};
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds reattach_grace{std::chrono::minutes(10)};
  std::chrono::milliseconds refusal_grace{std::chrono::seconds(30)};
  // So long a trainer that has lost its server tries to leave a checkpoint.
  std::chrono::milliseconds checkpoint_grace{std::chrono::minutes(1)};
};

enum class StopCause {
  kNone,
  kServer,      // it sent Stop
  kSignal,      // SIGTERM
  kServerLost,  // no server for reattach_grace
  kRefused,     // the server does not accept this attempt
};

// All functions may be called from any thread, but Finish only by the one that appends.
class Session {
 public:
  // `spool` outlives the session, which is its only reader.
  Session(SessionOptions options, Spool* spool);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Waits for the server's first answer. CANCELLED when a stop was requested before it came.
  absl::StatusOr<worker::v1::Assignment> WaitForAssignment();

  // The first request counts. But for kServer, whose sender is there to make room, it also ends
  // the wait for a full spool.
  void RequestStop(StopCause cause, const std::string& why);
  bool StopRequested() const { return stop_cause() != StopCause::kNone; }
  StopCause stop_cause() const { return stop_cause_.load(std::memory_order_acquire); }
  std::string stop_reason();

  void RequestPause() { pause_requested_.store(true, std::memory_order_release); }
  void RequestProbe() { probe_requested_.store(true, std::memory_order_release); }

  // What the server wants of the engine: a stop before a pause before a probe. A trainer that has
  // lost its server for long leaves a checkpoint behind, as for a pause, or stops when it could
  // write none within `checkpoint_grace` of being told. A probe is returned once for any number of
  // requests, the others every time.
  Request requested();

  // Waits until the server has stored all records, then takes leave. False when `timeout` passed
  // before: the records are in the spool, and the server reads it out once this process has ended.
  bool Finish(std::chrono::milliseconds timeout);

 private:
  class Outage;

  // The last thing to do without a server.
  Request CheckpointOrStop();
  void Loop();
  // One conversation. Returns why it ended, or why there was none.
  absl::Status Converse(Outage* outage);
  void OnAssignment(const worker::v1::Assignment& assignment);
  void SetConversation(Conversation* conversation);
  bool Closing();
  void Pause(std::chrono::milliseconds pause);
  void Close();

  const SessionOptions options_;
  Spool* const spool_;
  std::atomic<StopCause> stop_cause_ = StopCause::kNone;
  std::atomic<bool> pause_requested_ = false;
  std::atomic<bool> probe_requested_ = false;

  Mutex mutex_;
  CondVar changed_;
  std::optional<worker::v1::Assignment> assignment_ ABSL_GUARDED_BY(mutex_);
  std::string stop_reason_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool loop_ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<std::chrono::steady_clock::time_point> checkpoint_wanted_since_
      ABSL_GUARDED_BY(mutex_);
  Conversation* conversation_ ABSL_GUARDED_BY(mutex_) = nullptr;

  std::thread thread_;  // last: it uses the rest
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_LINK_SESSION_H_
