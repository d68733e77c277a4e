#include "client/health.h"

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>
#include <vector>

#include "client/api_error.h"
#include "client/deadline.h"

namespace normlab::client {
namespace {

// HealthCheckResponse{status: SERVING}: field 1, varint 1. gRPC's packages ship no stub for it.
bool SaysServing(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return false;
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes == std::string("\x08\x01");
}

}  // namespace

absl::Status CheckHealth(const std::shared_ptr<grpc::Channel>& channel,
                         std::chrono::milliseconds timeout) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(timeout));
  grpc::CompletionQueue queue;
  const grpc::Slice empty(std::string{});
  const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check",
                                          grpc::ByteBuffer(&empty, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  void* tag = nullptr;
  bool ok = false;
  call->Finish(&answer, &status, &tag);
  queue.Next(&tag, &ok);
  if (!status.ok()) return FromGrpc(status);
  if (!SaysServing(answer)) return absl::UnavailableError("the server says it is not serving");
  return absl::OkStatus();
}

}  // namespace normlab::client
