#include "server/rpc/points_stream.h"

#include <memory>
#include <optional>
#include <utility>

#include "server/rpc/status.h"

namespace normlab::rpc {
namespace {

// Only one thing is ever under way, reading on the pool or writing by gRPC, and each begins the
// other: so nothing here needs a lock.
class PointsStream : public grpc::ServerWriteReactor<v1::ReadPointsResponse> {
 public:
  PointsStream(app::Api& api, Caller caller, v1::ReadPointsRequest request)
      : api_(api), caller_(std::move(caller)), request_(std::move(request)) {}

  void Start() {
    api_.PostRead([this] { Open(); });
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);  // the client is gone
    api_.PostRead([this] { WritePage(); });
  }

  void OnDone() override { delete this; }

 private:
  void Open() {
    absl::StatusOr<app::Principal> principal = api_.Authenticate(caller_.token, caller_.origin);
    if (!principal.ok()) return Finish(ToGrpc(principal.status()));
    absl::StatusOr<std::unique_ptr<app::PointsReader>> reader =
        api_.ReadPoints(*principal, request_);
    if (!reader.ok()) return Finish(ToGrpc(reader.status()));
    reader_ = *std::move(reader);
    revocation_ = std::move(principal->revocation);
    WritePage();
  }

  void WritePage() {
    const absl::Status allowed = revocation_ ? revocation_->Check() : absl::OkStatus();
    if (!allowed.ok()) return Finish(ToGrpc(allowed));
    absl::StatusOr<std::optional<v1::ReadPointsResponse>> page = reader_->Next();
    if (!page.ok()) return Finish(ToGrpc(page.status()));
    if (!page->has_value()) return Finish(grpc::Status::OK);
    response_ = *std::move(*page);
    StartWrite(&response_);
  }

  app::Api& api_;
  const Caller caller_;
  std::shared_ptr<app::Revocation> revocation_;
  const v1::ReadPointsRequest request_;
  std::unique_ptr<app::PointsReader> reader_;
  v1::ReadPointsResponse response_;
};

}  // namespace

grpc::ServerWriteReactor<v1::ReadPointsResponse>* StartPointsStream(
    app::Api& api, Caller caller, const v1::ReadPointsRequest& request) {
  auto* const stream = new PointsStream(api, std::move(caller), request);
  stream->Start();
  return stream;
}

}  // namespace normlab::rpc
