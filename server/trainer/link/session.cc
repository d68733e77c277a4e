#include "server/trainer/link/session.h"

#include <algorithm>
#include <utility>

#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/trainer/link/conversation.h"
#include "server/trainer/link/endpoint.h"

namespace normlab::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kCloseTimeout(3);

// Answers that trying again will not change, as opposed to a server that is away or overloaded.
bool IsRefusal(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

}  // namespace

// Since when there is no server, or none that accepts us, and how long to pause.
class Session::Outage {
 public:
  explicit Outage(const SessionOptions& options)
      : options_(options), pause_(options.first_pause), since_(steady_clock::now()) {}

  // A server was there. Unless it also stored something, it may be about to refuse the same again:
  // then the pauses go on growing.
  void Met(bool stored) {
    since_ = steady_clock::now();
    if (!stored) return;
    pause_ = options_.first_pause;
    refused_since_.reset();
    said_ = false;
  }

  // Another try has failed. Returns why to give up, if it is time to.
  StopCause Add(const absl::Status& why) {
    const auto now = steady_clock::now();
    if (absl::IsResourceExhausted(why)) since_ = now;  // it is there, and its disk is full
    if (!said_) LogWarning("no server", {{"why", why.ToString()}});
    said_ = true;
    if (!refused_since_ && IsRefusal(why.code())) refused_since_ = now;
    if (!IsRefusal(why.code())) refused_since_.reset();
    if (refused_since_ && now - *refused_since_ >= options_.refusal_grace) {
      return StopCause::kRefused;
    }
    return now - since_ >= options_.reattach_grace ? StopCause::kServerLost : StopCause::kNone;
  }

  milliseconds NextPause() {
    return std::exchange(pause_, std::min(2 * pause_, options_.longest_pause));
  }

 private:
  const SessionOptions& options_;
  milliseconds pause_;
  steady_clock::time_point since_;
  std::optional<steady_clock::time_point> refused_since_;
  bool said_ = false;
};

Session::Session(SessionOptions options, Spool* spool)
    : options_(std::move(options)), spool_(spool), thread_([this] { Loop(); }) {}

Session::~Session() { Close(); }

absl::StatusOr<worker::v1::Assignment> Session::WaitForAssignment() {
  MutexLock lock(mutex_);
  while (!assignment_ && !StopRequested()) changed_.Wait(mutex_);
  if (!assignment_) return absl::CancelledError(stop_reason_);
  return *assignment_;
}

void Session::RequestStop(StopCause cause, const std::string& why) {
  {
    MutexLock lock(mutex_);
    if (!StopRequested()) {
      LogInfo("stopping", {{"why", why}});
      stop_reason_ = why;
      stop_cause_.store(cause, std::memory_order_release);
      changed_.NotifyAll();
    }
  }
  if (cause != StopCause::kServer) spool_->Interrupt();
}

std::string Session::stop_reason() {
  MutexLock lock(mutex_);
  return stop_reason_;
}

Request Session::requested() {
  const StopCause cause = stop_cause();
  if (cause == StopCause::kServerLost) return CheckpointOrStop();
  if (cause != StopCause::kNone) return Request::kStop;
  if (pause_requested_.load(std::memory_order_acquire)) return Request::kPause;
  const bool probe = probe_requested_.exchange(false, std::memory_order_acq_rel);
  return probe ? Request::kProbe : Request::kGoOn;
}

Request Session::CheckpointOrStop() {
  const auto now = steady_clock::now();
  MutexLock lock(mutex_);
  if (!checkpoint_wanted_since_) checkpoint_wanted_since_ = now;  // a step may take long
  return now - *checkpoint_wanted_since_ < options_.checkpoint_grace ? Request::kPause
                                                                     : Request::kStop;
}

bool Session::Finish(milliseconds timeout) {
  const bool stored = spool_->WaitUntilAcked(spool_->last_sequence(), timeout);
  Close();
  return stored;
}

void Session::Loop() {
  Outage outage(options_);
  while (!Closing()) {
    const absl::Status why = Converse(&outage);
    if (Closing()) break;
    switch (outage.Add(why)) {
      case StopCause::kRefused:
        RequestStop(StopCause::kRefused,
                    StrCat("the server refuses this attempt: ", why.message()));
        break;
      case StopCause::kServerLost:
        RequestStop(StopCause::kServerLost,
                    StrCat("no server for ", options_.reattach_grace.count() / 1000, " s"));
        break;
      default:
        break;
    }
    Pause(outage.NextPause());  // also after giving up: until training has stopped, it may return
  }
  MutexLock lock(mutex_);
  loop_ended_ = true;
  changed_.NotifyAll();
}

absl::Status Session::Converse(Outage* outage) {
  const absl::StatusOr<std::vector<std::string>> targets = ReadTargets(options_.endpoint_file);
  if (!targets.ok()) return absl::UnavailableError(targets.status().message());
  absl::Status ended;
  for (const std::string& target : *targets) {
    Conversation conversation(
        spool_, {.on_assignment = [this](const auto& assignment) { OnAssignment(assignment); },
                 .on_stop = [this] { RequestStop(StopCause::kServer, "the server asked for it"); },
                 .on_pause = [this] { RequestPause(); },
                 .on_probe = [this] { RequestProbe(); },
                 .closing = [this] { return Closing(); }});
    SetConversation(&conversation);
    ended = conversation.Run(target, options_.hello, options_.connect_timeout);
    SetConversation(nullptr);
    if (conversation.assigned()) {
      outage->Met(conversation.acked());
      break;
    }
    if (!absl::IsUnavailable(ended) || Closing()) break;  // the next target is for nobody here
  }
  return ended.ok() ? absl::UnavailableError("the server ended the conversation") : ended;
}

void Session::OnAssignment(const worker::v1::Assignment& assignment) {
  LogInfo("attached", {{"persisted_sequence", std::to_string(assignment.persisted_sequence())}});
  MutexLock lock(mutex_);
  if (!assignment_) assignment_ = assignment;
  changed_.NotifyAll();
}

void Session::SetConversation(Conversation* conversation) {
  MutexLock lock(mutex_);
  conversation_ = conversation;
}

bool Session::Closing() {
  MutexLock lock(mutex_);
  return closing_;
}

void Session::Pause(milliseconds pause) {
  const auto until = steady_clock::now() + pause;
  MutexLock lock(mutex_);
  for (auto left = until - steady_clock::now(); !closing_ && left.count() > 0;
       left = until - steady_clock::now()) {
    changed_.WaitFor(mutex_, left);
  }
}

void Session::Close() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    closing_ = true;
    changed_.NotifyAll();
  }
  spool_->Wake();
  {
    MutexLock lock(mutex_);
    while (!loop_ended_) {
      if (changed_.WaitFor(mutex_, kCloseTimeout)) continue;
      if (conversation_ != nullptr) conversation_->Cancel();  // its peer does not read
    }
  }
  thread_.join();
}

}  // namespace normlab::trainer
