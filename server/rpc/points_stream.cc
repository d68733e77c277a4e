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
  PointsStream(app::Api& api, std::string token, v1::ReadPointsRequest request)
      : api_(api), token_(std::move(token)), request_(std::move(request)) {}

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
    const absl::StatusOr<app::Principal> principal = api_.Authenticate(token_);
    if (!principal.ok()) return Finish(ToGrpc(principal.status()));
    absl::StatusOr<std::unique_ptr<app::PointsReader>> reader =
        api_.ReadPoints(*principal, request_);
    if (!reader.ok()) return Finish(ToGrpc(reader.status()));
    reader_ = *std::move(reader);
    WritePage();
  }

  void WritePage() {
    absl::StatusOr<std::optional<v1::ReadPointsResponse>> page = reader_->Next();
    if (!page.ok()) return Finish(ToGrpc(page.status()));
    if (!page->has_value()) return Finish(grpc::Status::OK);
    response_ = *std::move(*page);
    StartWrite(&response_);
  }

  app::Api& api_;
  const std::string token_;
  const v1::ReadPointsRequest request_;
  std::unique_ptr<app::PointsReader> reader_;
  v1::ReadPointsResponse response_;
};

}  // namespace

grpc::ServerWriteReactor<v1::ReadPointsResponse>* StartPointsStream(
    app::Api& api, std::string token, const v1::ReadPointsRequest& request) {
  auto* const stream = new PointsStream(api, std::move(token), request);
  stream->Start();
  return stream;
}

}  // namespace normlab::rpc
