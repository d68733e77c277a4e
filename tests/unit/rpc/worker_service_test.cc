// What a trainer hears from the real service, over a real stream.
#include "server/rpc/worker_service.h"

#include <grpcpp/grpcpp.h>

#include <fstream>

#include "gtest/gtest.h"
#include "tests/fakes/scripted_executor.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::rpc {
namespace {

using fakes::CheckpointRecord;
using fakes::FinishedRecord;
using fakes::SeriesRecord;
using fakes::StepRecord;
using worker::v1::AttachRequest;
using worker::v1::AttachResponse;
using worker::v1::Finished;

class WorkerServiceTest : public ::testing::Test {
 protected:
  WorkerServiceTest() {
    app::Dispatcher::Options options;
    options.data_dir = runs_.directory();
    options.files = &files_;
    options.clock = &runs_.clock();
    options.devices = &devices_;
    options.make_executor = [this](executor::Executor::ExitCallback on_exit) {
      auto made = std::make_unique<fakes::ScriptedExecutor>(std::move(on_exit));
      executor_ = made.get();
      return made;
    };
    dispatcher_ = std::make_unique<app::Dispatcher>(runs_.store(), std::move(options));
    service_ = std::make_unique<WorkerService>(*dispatcher_, runs_.store(), pool_);
    grpc::ServerBuilder builder;
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    EXPECT_TRUE(dispatcher_->Start().ok());
  }
  ~WorkerServiceTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    dispatcher_->Stop();
    pool_.Stop();
  }

  // A trainer's end of one stream.
  struct Trainer {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<AttachRequest, AttachResponse>> stream;

    void Send(uint64_t first, const std::vector<std::string>& records) {
      AttachRequest request;
      request.mutable_records()->set_first_sequence(first);
      for (const std::string& record : records) request.mutable_records()->add_records(record);
      EXPECT_TRUE(stream->Write(request));
    }
    AttachResponse Next() {
      AttachResponse response;
      EXPECT_TRUE(stream->Read(&response));
      return response;
    }
  };
  std::unique_ptr<Trainer> Attach(const executor::LaunchRequest& launch) {
    auto trainer = std::make_unique<Trainer>();
    trainer->stream = Stub()->Attach(&trainer->context);
    AttachRequest request;
    request.mutable_hello()->set_run(launch.key.run);
    request.mutable_hello()->set_attempt(launch.key.attempt);
    request.mutable_hello()->set_token(launch.token);
    EXPECT_TRUE(trainer->stream->Write(request));
    return trainer;
  }

  fakes::StoredRuns runs_;
  const app::RunFiles files_{runs_.directory(), "/nowhere"};
  app::Pool pool_{2};
  fakes::ScriptedExecutor* executor_ = nullptr;
  scheduler::DeviceBoard devices_{{{.id = "cpu:0"}}};
  std::unique_ptr<app::Dispatcher> dispatcher_;
  std::unique_ptr<WorkerService> service_;
  std::unique_ptr<grpc::Server> server_;

 private:
  worker::v1::WorkerService::Stub* Stub() {
    if (!made_) {
      made_ =
          worker::v1::WorkerService::NewStub(server_->InProcessChannel(grpc::ChannelArguments()));
    }
    return made_.get();
  }
  std::unique_ptr<worker::v1::WorkerService::Stub> made_;
};

TEST_F(WorkerServiceTest, APauseIsSaidOnceAndTheNextAssignmentNamesTheCheckpoint) {
  const std::string run = runs_.AddRun();
  dispatcher_->Wake();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  const auto trainer = Attach(launch);
  const worker::v1::Assignment first = trainer->Next().assignment();
  EXPECT_EQ(first.effective_spec().steps(), 180);
  EXPECT_EQ(first.device(), "cpu:0");
  EXPECT_EQ(first.checkpoint_directory(), files_.Checkpoints(run));
  EXPECT_EQ(first.resume_from(), "");
  EXPECT_EQ(first.init_file(), "");
  EXPECT_EQ(first.text_file(), "");
  ASSERT_TRUE(dispatcher_->Pause(run, "lab1").ok());
  EXPECT_TRUE(trainer->Next().has_pause());
  ASSERT_TRUE(dispatcher_->Pause(run, "lab1").ok());
  trainer->Send(1, {SeriesRecord({"loss"}), StepRecord(1, {4}), CheckpointRecord(1),
                    FinishedRecord(Finished::OUTCOME_PAUSED)});
  EXPECT_EQ(trainer->Next().ack().sequence(), 4u) << "the second pause says nothing new";
  std::ofstream(files_.Checkpoints(run) / "step-1.safetensors") << "x";
  executor::ExitReport exit;
  exit.exit_code = 0;
  executor_->Exit(launch.key, exit);
  while (runs_.Read(run).state() != v1::Run::STATE_PAUSED) std::this_thread::yield();

  ASSERT_TRUE(dispatcher_->Resume(run, "lab1").ok());
  const auto next = Attach(executor_->WaitForLaunch(2));
  const worker::v1::Assignment second = next->Next().assignment();
  EXPECT_EQ(second.resume_from(), files_.Checkpoints(run) / "step-1.safetensors");
  EXPECT_EQ(second.persisted_sequence(), 0u) << "records of this attempt";
}

TEST_F(WorkerServiceTest, AProbeIsSaidEachTimeAndNotAgainToATrainerThatComesBack) {
  const std::string run = runs_.AddRun();
  dispatcher_->Wake();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  {
    const auto trainer = Attach(launch);
    EXPECT_TRUE(trainer->Next().has_assignment());
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(dispatcher_->Probe(run, "lab1").ok());
      EXPECT_TRUE(trainer->Next().has_probe());
    }
    trainer->context.TryCancel();
    trainer->stream->Finish();
  }
  // Once the stream is gone there is nobody to ask.
  absl::Status asked;
  do {
    asked = dispatcher_->Probe(run, "lab1");
  } while (asked.ok());
  EXPECT_EQ(asked.code(), absl::StatusCode::kFailedPrecondition);
  const auto trainer = Attach(launch);
  EXPECT_TRUE(trainer->Next().has_assignment());
  ASSERT_TRUE(dispatcher_->Pause(run, "lab1").ok());
  EXPECT_TRUE(trainer->Next().has_pause()) << "the probe is forgotten";
}

TEST_F(WorkerServiceTest, AStopComesAlsoAfterAPause) {
  const std::string run = runs_.AddRun();
  dispatcher_->Wake();
  const auto trainer = Attach(executor_->WaitForLaunch(1));
  EXPECT_TRUE(trainer->Next().has_assignment());
  ASSERT_TRUE(dispatcher_->Pause(run, "lab1").ok());
  EXPECT_TRUE(trainer->Next().has_pause());
  ASSERT_TRUE(dispatcher_->Cancel(run, "lab1").ok());
  EXPECT_TRUE(trainer->Next().has_stop());
}

TEST_F(WorkerServiceTest, ATrainerThatComesBackIsToldAgain) {
  const std::string run = runs_.AddRun();
  dispatcher_->Wake();
  const executor::LaunchRequest launch = executor_->WaitForLaunch(1);
  {
    const auto trainer = Attach(launch);
    EXPECT_TRUE(trainer->Next().has_assignment());
    ASSERT_TRUE(dispatcher_->Pause(run, "lab1").ok());
    trainer->context.TryCancel();
    trainer->stream->Finish();
  }
  const auto trainer = Attach(launch);
  EXPECT_TRUE(trainer->Next().has_assignment());
  EXPECT_TRUE(trainer->Next().has_pause());
}

TEST_F(WorkerServiceTest, AWideBatchIsStoredInPiecesSoThatOthersGetTheirTurn) {
  const std::string run = runs_.AddRun();
  dispatcher_->Wake();
  const auto trainer = Attach(executor_->WaitForLaunch(1));
  EXPECT_TRUE(trainer->Next().has_assignment());
  constexpr int kSeries = 500;
  constexpr int kSteps = 100;
  std::vector<std::string> names;
  for (int i = 0; i < kSeries; ++i) names.push_back("series/" + std::to_string(i));
  trainer->Send(1, {SeriesRecord(names)});
  EXPECT_EQ(trainer->Next().ack().sequence(), 1u);
  const uint64_t commits = runs_.store().writer().commits();
  std::vector<std::string> steps;
  for (int step = 1; step <= kSteps; ++step) {
    steps.push_back(StepRecord(step, std::vector<double>(kSeries, 1.5)));
  }
  trainer->Send(2, steps);
  while (trainer->Next().ack().sequence() < 1 + kSteps) {
  }
  // The writer ends a commit at some thousand rows: it had the chance to do so.
  EXPECT_GE(runs_.store().writer().commits() - commits, 5u) << kSeries * kSteps << " rows";
  EXPECT_EQ(runs_.Read(run).progress().step(), kSteps);
}

}  // namespace
}  // namespace normlab::rpc
