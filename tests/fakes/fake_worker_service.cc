#include "tests/fakes/fake_worker_service.h"

#include <gtest/gtest.h>

#include <fstream>
#include <utility>

namespace normlab {

using worker::v1::AttachRequest;
using worker::v1::AttachResponse;

FakeWorkerServer::FakeWorkerServer(std::filesystem::path directory, v1::RunSpec effective_spec)
    : directory_(std::move(directory)),
      effective_spec_(std::move(effective_spec)),
      decide_([](uint64_t, size_t) { return Action::kStoreAndAck; }) {
  std::filesystem::create_directories(checkpoint_directory());
}

FakeWorkerServer::~FakeWorkerServer() { Stop(); }

void FakeWorkerServer::Start(bool with_socket) {
  const std::string socket = directory_ / "socket";
  grpc::ServerBuilder builder;
  int port = 0;
  builder.RegisterService(this);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  if (with_socket) {
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  }
  server_ = builder.BuildAndStart();
  ASSERT_NE(server_, nullptr);
  const std::filesystem::path temporary = directory_ / "endpoint.json.tmp";
  std::ofstream(temporary) << "{\"http\": \"127.0.0.1:1\", \"grpc\": \"127.0.0.1:" << port
                           << "\", \"socket\": \"" << (with_socket ? socket : "")
                           << "\", \"token\": \"no matter\"}";
  std::filesystem::rename(temporary, endpoint_file());
}

void FakeWorkerServer::Stop() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

void FakeWorkerServer::set_decide(Decide decide) {
  MutexLock lock(mutex_);
  decide_ = std::move(decide);
}

void FakeWorkerServer::set_refusal(grpc::Status refusal) {
  MutexLock lock(mutex_);
  refusal_ = std::move(refusal);
}

void FakeWorkerServer::set_persisted_sequence_offset(int64_t offset) {
  MutexLock lock(mutex_);
  offset_ = offset;
}

void FakeWorkerServer::set_step_limit(int64_t step_limit) {
  MutexLock lock(mutex_);
  step_limit_ = step_limit;
}

void FakeWorkerServer::set_resume_from(std::string resume_from) {
  MutexLock lock(mutex_);
  resume_from_ = std::move(resume_from);
}

std::vector<std::string> FakeWorkerServer::records() {
  MutexLock lock(mutex_);
  return records_;
}

std::vector<worker::v1::Hello> FakeWorkerServer::hellos() {
  MutexLock lock(mutex_);
  return hellos_;
}

size_t FakeWorkerServer::duplicates() {
  MutexLock lock(mutex_);
  return duplicates_;
}

bool FakeWorkerServer::WaitFor(const std::function<bool()>& condition) {
  MutexLock lock(mutex_);
  while (!condition()) {
    if (!changed_.WaitFor(mutex_, std::chrono::minutes(1))) return false;
  }
  return true;
}

bool FakeWorkerServer::WaitForRecords(size_t count) {
  return WaitFor([&] { return records_.size() >= count; });
}

bool FakeWorkerServer::WaitForHellos(size_t count) {
  return WaitFor([&] { return hellos_.size() >= count; });
}

bool FakeWorkerServer::WaitForFinished(worker::v1::Finished* finished) {
  worker::v1::Record record;
  const bool come = WaitFor([&] {
    return !records_.empty() && record.ParseFromString(records_.back()) && record.has_finished();
  });
  if (come && finished != nullptr) *finished = record.finished();
  return come;
}

grpc::Status FakeWorkerServer::Attach(grpc::ServerContext*, Stream* stream) {
  AttachRequest request;
  if (!stream->Read(&request) || !request.has_hello()) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "no hello"};
  }
  grpc::Status status = Welcome(request.hello(), stream);
  while (status.ok() && stream->Read(&request)) {
    const Action action = Store(request.records());
    if (action == Action::kStoreAndHangUp || action == Action::kDropAndHangUp) {
      return {grpc::StatusCode::UNAVAILABLE, "hung up by the test"};
    }
    if (action == Action::kStoreOnly) continue;
    AttachResponse response;
    response.mutable_ack()->set_sequence(request.records().first_sequence() +
                                         request.records().records_size() - 1);
    stream->Write(response);
    if (action == Action::kStoreAndAck) continue;
    if (action == Action::kStoreAckAndStop) response.mutable_stop();
    if (action == Action::kStoreAckAndPause) response.mutable_pause();
    if (action == Action::kStoreAckAndProbe) response.mutable_probe();
    stream->Write(response);
  }
  return status;
}

grpc::Status FakeWorkerServer::Welcome(const worker::v1::Hello& hello, Stream* stream) {
  AttachResponse response;
  {
    MutexLock lock(mutex_);
    hellos_.push_back(hello);
    changed_.NotifyAll();
    if (!refusal_.ok()) return refusal_;
    *response.mutable_assignment()->mutable_effective_spec() = effective_spec_;
    response.mutable_assignment()->set_device("cpu:0");
    response.mutable_assignment()->set_checkpoint_directory(checkpoint_directory());
    response.mutable_assignment()->set_resume_from(resume_from_);
    response.mutable_assignment()->set_step_limit(step_limit_);
    response.mutable_assignment()->set_persisted_sequence(records_.size() + offset_);
  }
  stream->Write(response);
  return grpc::Status::OK;
}

FakeWorkerServer::Action FakeWorkerServer::Store(const worker::v1::RecordBatch& batch) {
  MutexLock lock(mutex_);
  EXPECT_GE(batch.records_size(), 1);
  EXPECT_LE(batch.records_size(), 4096);
  EXPECT_LE(batch.first_sequence(), records_.size() + 1) << "records are missing";
  const Action action = decide_(batch.first_sequence(), batch.records_size());
  if (action == Action::kDropAndHangUp) return action;
  for (int i = 0; i < batch.records_size(); ++i) {
    if (batch.first_sequence() + i == records_.size() + 1) {
      records_.push_back(batch.records(i));
    } else {
      ++duplicates_;
    }
  }
  changed_.NotifyAll();
  return action;
}

}  // namespace normlab
