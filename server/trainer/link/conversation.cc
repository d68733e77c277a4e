#include "server/trainer/link/conversation.h"

#include <thread>
#include <utility>

#include "server/base/grpc_deadline.h"
#include "server/base/strings.h"

namespace normlab::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kAssignmentTimeout(20);
constexpr seconds kLookUp(1);  // how long the sender sleeps at most; Wake ends it sooner
constexpr seconds kLeaveTimeout(1);

// A channel of its own for every try: gRPC's shared ones would add their own pauses to ours.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

// WaitForConnected would go on trying where nobody listens.
bool Connect(grpc::Channel& channel, milliseconds timeout) {
  const gpr_timespec deadline = DeadlineAfter(timeout);
  for (grpc_connectivity_state state = channel.GetState(true); state != GRPC_CHANNEL_READY;
       state = channel.GetState(true)) {
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) return false;
    if (!channel.WaitForStateChange(state, deadline)) return false;
  }
  return true;
}

absl::Status ToAbsl(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace

Conversation::Conversation(Spool* spool, Callbacks callbacks)
    : spool_(spool), callbacks_(std::move(callbacks)) {}

absl::Status Conversation::Run(const std::string& target, const worker::v1::Hello& hello,
                               milliseconds connect_timeout) {
  const std::shared_ptr<grpc::Channel> channel = MakeChannel(target);
  if (!Connect(*channel, connect_timeout)) {
    return absl::UnavailableError(StrCat("nobody answers at ", target));
  }
  const auto stub = worker::v1::WorkerService::NewStub(channel);
  stream_ = stub->Attach(&context_);
  return Talk(hello);
}

absl::Status Conversation::Talk(const worker::v1::Hello& hello) {
  std::thread reader([this] { ReadLoop(); });
  worker::v1::AttachRequest request;
  *request.mutable_hello() = hello;
  if (stream_->Write(request)) {
    if (WaitForAssignment()) {
      SendLoop();
      TakeLeave();
    } else if (!Ended()) {
      context_.TryCancel();  // only then: it would hide the status with which the server ended it
    }
  }
  reader.join();
  const grpc::Status status = stream_->Finish();
  return fault_.ok() ? ToAbsl(status) : fault_;
}

void Conversation::ReadLoop() {
  worker::v1::AttachResponse response;
  while (fault_.ok() && stream_->Read(&response)) fault_ = Handle(response);
  if (!fault_.ok()) context_.TryCancel();
  {
    MutexLock lock(mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }
  spool_->Wake();
}

absl::Status Conversation::Handle(const worker::v1::AttachResponse& response) {
  switch (response.message_case()) {
    case worker::v1::AttachResponse::kAssignment:
      return Begin(response.assignment());
    case worker::v1::AttachResponse::kAck:
      acked_ = true;
      return spool_->Ack(response.ack().sequence());
    case worker::v1::AttachResponse::kStop:
      callbacks_.on_stop();
      return absl::OkStatus();
    case worker::v1::AttachResponse::kPause:
      callbacks_.on_pause();
      return absl::OkStatus();
    case worker::v1::AttachResponse::kProbe:
      callbacks_.on_probe();
      return absl::OkStatus();
    case worker::v1::AttachResponse::MESSAGE_NOT_SET:
      break;  // of a newer server
  }
  return absl::OkStatus();
}

absl::Status Conversation::Begin(const worker::v1::Assignment& assignment) {
  if (assignment.persisted_sequence() < spool_->acked_sequence()) {
    return absl::FailedPreconditionError(
        StrCat("the server has records up to ", assignment.persisted_sequence(),
               " and had acknowledged ", spool_->acked_sequence(), ", which are gone here"));
  }
  if (absl::Status status = spool_->Ack(assignment.persisted_sequence()); !status.ok()) {
    return absl::FailedPreconditionError(status.message());
  }
  cursor_ = spool_->AckedCursor();
  callbacks_.on_assignment(assignment);
  MutexLock lock(mutex_);
  assigned_ = true;
  changed_.NotifyAll();
  return absl::OkStatus();
}

bool Conversation::WaitForAssignment() {
  MutexLock lock(mutex_);
  while (!assigned_ && !ended_) {
    if (!changed_.WaitFor(mutex_, kAssignmentTimeout)) break;
  }
  return assigned_;
}

bool Conversation::Ended() {
  MutexLock lock(mutex_);
  return ended_;
}

void Conversation::SendLoop() {
  worker::v1::AttachRequest request;
  while (!Ended() && !callbacks_.closing()) {
    if (!spool_->WaitForRecord(cursor_, kLookUp)) continue;
    worker::v1::RecordBatch& batch = *request.mutable_records();
    batch.set_first_sequence(cursor_.sequence + 1);
    batch.clear_records();
    spool_->Read(&cursor_, {}, [&batch](uint64_t, std::string_view bytes) {
      batch.add_records(bytes.data(), bytes.size());
    });
    if (!stream_->Write(request)) return;
  }
}

void Conversation::TakeLeave() {
  stream_->WritesDone();
  MutexLock lock(mutex_);
  while (!ended_) {
    if (!changed_.WaitFor(mutex_, kLeaveTimeout)) break;
  }
  if (!ended_) context_.TryCancel();
}

}  // namespace normlab::trainer
