#include "server/rpc/checkpoint_stream.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "server/base/strings.h"
#include "server/rpc/status.h"

namespace normlab::rpc {
namespace {

constexpr int64_t kPiece = 1 << 20;  // bytes; a message of gRPC has 4 MiB at most

// Only one thing is ever under way, reading on the pool or writing by gRPC, and each begins the
// other: so nothing here needs a lock.
class CheckpointStream : public grpc::ServerWriteReactor<v1::ReadCheckpointResponse> {
 public:
  CheckpointStream(app::Api& api, Caller caller, v1::ReadCheckpointRequest request)
      : api_(api), caller_(std::move(caller)), request_(std::move(request)) {}

  void Start() {
    api_.PostRead([this] { Open(); });
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);  // the client is gone
    if (left_ == 0) return Finish(grpc::Status::OK);
    response_.Clear();
    api_.PostRead([this] { WritePiece(); });
  }

  void OnDone() override { delete this; }

 private:
  void Open() {
    absl::StatusOr<app::Principal> principal = api_.Authenticate(caller_.token, caller_.origin);
    if (!principal.ok()) return Finish(ToGrpc(principal.status()));
    absl::StatusOr<app::OpenCheckpoint> opened = api_.ReadCheckpoint(*principal, request_);
    if (!opened.ok()) return Finish(ToGrpc(opened.status()));
    checkpoint_ = *std::move(opened);
    revocation_ = std::move(principal->revocation);
    left_ = checkpoint_.bytes;
    response_.set_step(checkpoint_.step);
    response_.set_total_bytes(checkpoint_.bytes);
    WritePiece();
  }

  void WritePiece() {
    const absl::Status allowed = revocation_ ? revocation_->Check() : absl::OkStatus();
    if (!allowed.ok()) return Finish(ToGrpc(allowed));
    const int64_t wanted = std::min(kPiece, left_);
    std::string& data = *response_.mutable_data();
    data.resize(static_cast<size_t>(wanted));
    checkpoint_.file.read(data.data(), wanted);
    if (checkpoint_.file.gcount() != wanted) {
      return Finish(ToGrpc(absl::DataLossError(StrCat(
          "the file of the checkpoint is shorter than the ", checkpoint_.bytes, " bytes it had"))));
    }
    left_ -= wanted;
    StartWrite(&response_);
  }

  app::Api& api_;
  const Caller caller_;
  std::shared_ptr<app::Revocation> revocation_;
  const v1::ReadCheckpointRequest request_;
  app::OpenCheckpoint checkpoint_;
  int64_t left_ = 0;
  v1::ReadCheckpointResponse response_;
};

}  // namespace

grpc::ServerWriteReactor<v1::ReadCheckpointResponse>* StartCheckpointStream(
    app::Api& api, Caller caller, const v1::ReadCheckpointRequest& request) {
  auto* const stream = new CheckpointStream(api, std::move(caller), request);
  stream->Start();
  return stream;
}

}  // namespace normlab::rpc
