// WatchRuns over real sockets, with a fake api behind it.
#include "server/rpc/watch_stream.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "normlab/v1/run_service.grpc.pb.h"
#include "server/rpc/rpc_server.h"
#include "tests/fakes/fake_api.h"
#include "tests/fakes/temp_dir.h"

namespace normlab::rpc {
namespace {

using std::chrono::milliseconds;

v1::WatchRunsResponse PointsAt(int64_t step) {
  v1::WatchRunsResponse event;
  event.mutable_points()->set_run("R");
  v1::Column& column = *event.mutable_points()->add_columns();
  column.set_name("loss");
  column.add_steps(step);
  column.add_values(0.5);
  return event;
}

v1::WatchRunsResponse LargeEvent() {
  v1::WatchRunsResponse event;
  event.mutable_run()->set_display_name(std::string(100'000, 'x'));
  return event;
}

// One stream of one client with a connection of its own.
class Reader {
 public:
  explicit Reader(const std::string& address, const std::string& token = testing::FakeApi::kToken) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = v1::RunService::NewStub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
    context_.AddMetadata("authorization", std::string("Bearer ").append(token));
    v1::WatchRunsRequest request;
    request.add_runs("R");
    stream_ = stub_->WatchRuns(&context_, request);
  }

  v1::WatchRunsResponse Next() {
    v1::WatchRunsResponse event;
    EXPECT_TRUE(stream_->Read(&event)) << "the stream has ended";
    return event;
  }
  int64_t NextStep() { return Next().points().columns(0).steps(0); }
  // Reads to the end.
  grpc::Status Finish() {
    v1::WatchRunsResponse event;
    while (stream_->Read(&event)) ++events_;
    return stream_->Finish();
  }
  int events() const { return events_; }
  void Cancel() { context_.TryCancel(); }

 private:
  std::unique_ptr<v1::RunService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchRunsResponse>> stream_;
  int events_ = 0;
};

class WatchStreamTest : public ::testing::Test {
 protected:
  ~WatchStreamTest() override {
    if (server_) server_->Stop();
  }
  // Starts the server when first asked for.
  const std::string& address() {
    if (!server_) {
      server_ = std::make_unique<RpcServer>(api_, nullptr, limits_);
      const absl::Status started = server_->Start({"127.0.0.1:0", folder_.path() / "socket"});
      EXPECT_TRUE(started.ok()) << started;
    }
    return server_->address();
  }

  fakes::TempDir folder_;
  testing::FakeApi api_;
  WatchLimits limits_;
  std::unique_ptr<RpcServer> server_;
};

TEST_F(WatchStreamTest, SendsHistoryThenLiveEventsThenEnds) {
  api_.feed()->Push(PointsAt(1), "token-1");
  Reader reader(address());
  const v1::WatchRunsResponse first = reader.Next();
  EXPECT_EQ(first.points().columns(0).steps(0), 1);
  EXPECT_EQ(first.resume_token(), "token-1");
  const std::string longer(200, 't');  // its length takes two bytes
  api_.feed()->Push(PointsAt(2), longer);
  const v1::WatchRunsResponse second = reader.Next();
  EXPECT_EQ(second.points().columns(0).steps(0), 2);
  EXPECT_EQ(second.resume_token(), longer);
  for (int step = 3; step <= 500; ++step) api_.feed()->Push(PointsAt(step));
  for (int step = 3; step <= 500; ++step) ASSERT_EQ(reader.NextStep(), step);
  api_.feed()->Finish();
  EXPECT_TRUE(reader.Finish().ok());
  api_.feed()->AwaitWatches(0);
}

TEST_F(WatchStreamTest, ManyStreamsOfOneConnectionAllGetEverything) {
  std::vector<std::unique_ptr<Reader>> readers;
  for (int i = 0; i < 30; ++i) readers.push_back(std::make_unique<Reader>(address()));
  for (int step = 1; step <= 300; ++step) api_.feed()->Push(PointsAt(step));
  api_.feed()->Finish();
  for (const auto& reader : readers) {
    for (int step = 1; step <= 300; ++step) ASSERT_EQ(reader->NextStep(), step);
    EXPECT_TRUE(reader->Finish().ok());
  }
}

TEST_F(WatchStreamTest, AnIdleStreamSaysHeartbeat) {
  limits_.heartbeat = milliseconds(20);
  Reader reader(address());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(reader.Next().has_heartbeat());
}

TEST_F(WatchStreamTest, WhoTakesNothingIsDetachedAndToldAndOthersNoticeNothing) {
  limits_.stall_timeout = milliseconds(200);
  Reader stalled(address());
  api_.feed()->AwaitWatches(1);
  Reader other(address());
  for (int i = 0; i < 50; ++i) api_.feed()->Push(LargeEvent());
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(other.Next().has_run());
  api_.feed()->AwaitWatches(1);
  EXPECT_EQ(api_.stalled, 1);
  const grpc::Status status = stalled.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("come back"));
  EXPECT_LT(stalled.events(), 50);
  api_.feed()->Push(PointsAt(1));
  EXPECT_EQ(other.NextStep(), 1);
}

TEST_F(WatchStreamTest, AClientThatGoesIsForgottenAlsoInTheMiddleOfAMessage) {
  Reader idle(address());
  api_.feed()->AwaitWatches(1);
  idle.Cancel();
  api_.feed()->AwaitWatches(0);
  for (int i = 0; i < 50; ++i) api_.feed()->Push(LargeEvent());
  Reader busy(address());
  busy.Next();
  busy.Cancel();
  api_.feed()->AwaitWatches(0);
}

TEST_F(WatchStreamTest, AServerThatStopsEndsStreamsWithUnavailable) {
  std::vector<std::unique_ptr<Reader>> readers;
  for (int i = 0; i < 10; ++i) readers.push_back(std::make_unique<Reader>(address()));
  api_.feed()->AwaitWatches(10);
  std::thread stopper([this] { server_->Stop(); });
  for (const auto& reader : readers) {
    const grpc::Status status = reader->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
  }
  stopper.join();
  api_.feed()->AwaitWatches(0);
}

TEST_F(WatchStreamTest, AWatchThatBreaksOrCannotBeginSaysWhy) {
  Reader nobody(address(), "not a token");
  EXPECT_EQ(nobody.Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  api_.watch_runs = [](const v1::WatchRunsRequest&) {
    return absl::OutOfRangeError("the token is of another store");
  };
  Reader foreign(address());
  EXPECT_EQ(foreign.Finish().error_code(), grpc::StatusCode::OUT_OF_RANGE);
  api_.watch_runs = nullptr;
  Reader broken(address());
  api_.feed()->Break(absl::InternalError("the disk is gone"));
  EXPECT_EQ(broken.Finish().error_message(), "the disk is gone");
}

}  // namespace
}  // namespace normlab::rpc
