// A server that speaks only to trainers: keeps what it is sent as the real one would, checks that
// nothing is missing, and ends conversations where a test wants it to.
//
//   FakeWorkerServer server(directory, spec);
//   server.Start();
//   ... a trainer with --endpoint-file server.endpoint_file() ...
//   server.WaitForFinished();
#ifndef NORMLAB_TESTS_FAKES_FAKE_WORKER_SERVICE_H_
#define NORMLAB_TESTS_FAKES_FAKE_WORKER_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "normlab/worker/v1/worker.grpc.pb.h"
#include "server/base/mutex.h"

namespace normlab {

// One attempt's. Any thread.
class FakeWorkerServer : private worker::v1::WorkerService::Service {
 public:
  // What to do with a batch that has just come in: tests set it.
  enum class Action {
    kStoreAndAck,
    kStoreOnly,         // the acknowledgement does not get through
    kStoreAndHangUp,    // stored, then the connection is lost
    kDropAndHangUp,     // the connection is lost before
    kStoreAckAndStop,   // and asks to stop
    kStoreAckAndPause,  // and asks to pause
    kStoreAckAndProbe,  // and asks to measure
  };
  using Decide = std::function<Action(uint64_t first_sequence, size_t records)>;

  FakeWorkerServer(std::filesystem::path directory, v1::RunSpec effective_spec);
  ~FakeWorkerServer() override;

  // Listens on DIRECTORY/socket and on a TCP port, and writes DIRECTORY/endpoint.json.
  void Start(bool with_socket = true);
  // Ends every conversation, as a crash would.
  void Stop();

  void set_decide(Decide decide);
  // Answers every Hello with this instead of an assignment, while not OK.
  void set_refusal(grpc::Status refusal);
  void set_persisted_sequence_offset(int64_t offset);
  // Files that the assignment names, besides the checkpoint folder, which is DIRECTORY/checkpoints.
  void set_resume_from(std::string resume_from);
  void set_step_limit(int64_t step_limit);

  std::filesystem::path endpoint_file() const { return directory_ / "endpoint.json"; }
  std::filesystem::path checkpoint_directory() const { return directory_ / "checkpoints"; }
  std::vector<std::string> records();
  std::vector<worker::v1::Hello> hellos();
  size_t duplicates();

  // Waits for a condition on what is above; false after a minute without it.
  bool WaitForRecords(size_t count);
  bool WaitForHellos(size_t count);
  bool WaitForFinished(worker::v1::Finished* finished = nullptr);

 private:
  using Stream = grpc::ServerReaderWriter<worker::v1::AttachResponse, worker::v1::AttachRequest>;

  grpc::Status Attach(grpc::ServerContext* context, Stream* stream) override;
  grpc::Status Welcome(const worker::v1::Hello& hello, Stream* stream);
  Action Store(const worker::v1::RecordBatch& batch);
  bool WaitFor(const std::function<bool()>& condition);

  const std::filesystem::path directory_;
  const v1::RunSpec effective_spec_;
  std::unique_ptr<grpc::Server> server_;

  Mutex mutex_;
  CondVar changed_;
  Decide decide_;
  grpc::Status refusal_;
  int64_t offset_ = 0;
  std::string resume_from_;
  int64_t step_limit_ = 0;
  std::vector<std::string> records_;  // records_[i] has sequence i + 1
  std::vector<worker::v1::Hello> hellos_;
  size_t duplicates_ = 0;
};

}  // namespace normlab

#endif  // NORMLAB_TESTS_FAKES_FAKE_WORKER_SERVICE_H_
