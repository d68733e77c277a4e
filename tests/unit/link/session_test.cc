#include "server/trainer/link/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "tests/fakes/fake_worker_service.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/link/effective_spec.h"

namespace normlab::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using testing::HasSubstr;
using Action = FakeWorkerServer::Action;

class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Spool::Create(directory_ / "spool", Spool::kCapacityUnit).ok());
    auto spool = Spool::Open(directory_ / "spool");
    ASSERT_TRUE(spool.ok());
    spool_ = *std::move(spool);
    server_ = std::make_unique<FakeWorkerServer>(directory_, EffectiveSpec(100));
    options_.hello.set_run("01RUN");
    options_.hello.set_attempt(3);
    options_.hello.set_token("secret");
    options_.endpoint_file = server_->endpoint_file();
    options_.first_pause = milliseconds(5);
  }
  void TearDown() override {
    session_.reset();
    server_.reset();
  }

  void Attach() {
    session_ = std::make_unique<Session>(options_, spool_.get());
    const auto assignment = session_->WaitForAssignment();
    ASSERT_TRUE(assignment.ok()) << assignment.status();
    EXPECT_EQ(assignment->effective_spec().steps(), 100);
  }
  static std::string Payload(size_t i) { return "record " + std::to_string(i); }
  void Append(size_t first, size_t last) {
    for (size_t i = first; i <= last; ++i) ASSERT_EQ(*spool_->Append(Payload(i)), i);
  }
  // The server has records 1 to `count`, each as it was appended.
  void ExpectRecords(size_t count) {
    const std::vector<std::string> records = server_->records();
    ASSERT_EQ(records.size(), count);
    for (size_t i = 1; i <= count; ++i) ASSERT_EQ(records[i - 1], Payload(i));
  }

  const fakes::TempDir temporary_;
  const std::filesystem::path directory_ = temporary_.path();
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<FakeWorkerServer> server_;
  SessionOptions options_;
  std::unique_ptr<Session> session_;
};

TEST_F(SessionTest, RecordsArriveInOrderAndLeaveTheSpool) {
  server_->Start();
  Attach();
  Append(1, 20000);  // many times what the ring holds
  EXPECT_TRUE(session_->Finish(minutes(1)));
  ExpectRecords(20000);
  EXPECT_EQ(server_->duplicates(), 0U);
  EXPECT_EQ(spool_->acked_sequence(), 20000U);
  ASSERT_EQ(server_->hellos().size(), 1U);
  EXPECT_EQ(server_->hellos()[0].run(), "01RUN");
  EXPECT_EQ(server_->hellos()[0].attempt(), 3);
  EXPECT_EQ(server_->hellos()[0].token(), "secret");
}

TEST_F(SessionTest, LostConnectionsLeaveNoGapAndNothingTwice) {
  std::atomic<int> batch = 0;
  server_->set_decide([&](uint64_t, size_t) {
    switch (++batch % 7) {
      case 2:
        return Action::kStoreAndHangUp;
      case 4:
        return Action::kDropAndHangUp;
      case 6:
        return Action::kStoreOnly;
      default:
        return Action::kStoreAndAck;
    }
  });
  server_->Start();
  Attach();
  for (size_t i = 1; i <= 500; ++i) {
    Append(i, i);
    ASSERT_TRUE(server_->WaitForRecords(i));  // one batch each
  }
  server_->set_decide([](uint64_t, size_t) { return Action::kStoreAndAck; });
  Append(501, 501);
  EXPECT_TRUE(session_->Finish(minutes(1)));
  ExpectRecords(501);
  EXPECT_EQ(server_->duplicates(), 0U);
  EXPECT_GT(server_->hellos().size(), 100U);
}

TEST_F(SessionTest, ServerMayRestartWhileRecordsComeIn) {
  server_->Start();
  Attach();
  for (size_t round = 1; round <= 5; ++round) {
    Append(round * 200 - 199, round * 200 - 100);
    ASSERT_TRUE(server_->WaitForRecords(round * 200 - 100));
    server_->Stop();
    Append(round * 200 - 99, round * 200);
    server_->Start();  // on another port, written into endpoint.json
    ASSERT_TRUE(server_->WaitForRecords(round * 200));
  }
  EXPECT_TRUE(session_->Finish(minutes(1)));
  ExpectRecords(1000);
  EXPECT_FALSE(session_->StopRequested());
}

TEST_F(SessionTest, TrainerMayStartBeforeItsServer) {
  session_ = std::make_unique<Session>(options_, spool_.get());
  Append(1, 10);
  server_->Start();
  EXPECT_TRUE(session_->WaitForAssignment().ok());
  EXPECT_TRUE(session_->Finish(minutes(1)));
  ExpectRecords(10);
}

TEST_F(SessionTest, TcpServesWhereThereIsNoSocket) {
  server_->Start(/*with_socket=*/false);
  Attach();
  Append(1, 10);
  EXPECT_TRUE(session_->Finish(minutes(1)));
  ExpectRecords(10);
}

TEST_F(SessionTest, FullSpoolWaitsForTheServerAndLosesNothing) {
  server_->Start();
  Attach();
  server_->Stop();
  uint64_t last = 0;
  while (spool_->TryAppend(Payload(last + 1)).ok()) ++last;
  std::thread producer([&] { Append(last + 1, last + 1000); });
  server_->Start();
  producer.join();
  EXPECT_TRUE(session_->Finish(minutes(1)));
  ExpectRecords(last + 1000);
}

TEST_F(SessionTest, StopFromTheServerIsNoticed) {
  server_->set_decide([](uint64_t, size_t) { return Action::kStoreAckAndStop; });
  server_->Start();
  Attach();
  Append(1, 1);
  ASSERT_TRUE(spool_->WaitUntilAcked(1, minutes(1)));
  const auto deadline = std::chrono::steady_clock::now() + minutes(1);
  while (!session_->StopRequested() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(session_->stop_cause(), StopCause::kServer);
  EXPECT_TRUE(session_->Finish(minutes(1)));
}

TEST_F(SessionTest, AStopCountsMoreThanAPause) {
  server_->Start();
  Attach();
  EXPECT_EQ(session_->requested(), Request::kGoOn);
  session_->RequestPause();
  EXPECT_EQ(session_->requested(), Request::kPause);
  EXPECT_FALSE(session_->StopRequested());
  session_->RequestStop(StopCause::kServer, "cancelled");
  EXPECT_EQ(session_->requested(), Request::kStop);
}

TEST_F(SessionTest, AProbeIsSaidOnceAndAPauseCountsMore) {
  server_->Start();
  Attach();
  session_->RequestProbe();
  session_->RequestProbe();
  EXPECT_EQ(session_->requested(), Request::kProbe);
  EXPECT_EQ(session_->requested(), Request::kGoOn) << "two that came together are one";
  session_->RequestProbe();
  EXPECT_EQ(session_->requested(), Request::kProbe) << "and it can be asked for again";
  session_->RequestProbe();
  session_->RequestPause();
  EXPECT_EQ(session_->requested(), Request::kPause);
  EXPECT_EQ(session_->requested(), Request::kPause);
}

TEST_F(SessionTest, FirstStopRequestCountsAndEndsTheWaitForAnAssignment) {
  session_ = std::make_unique<Session>(options_, spool_.get());
  session_->RequestStop(StopCause::kSignal, "first");
  session_->RequestStop(StopCause::kServer, "second");
  const absl::Status status = session_->WaitForAssignment().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(status.ToString(), HasSubstr("first"));
  EXPECT_EQ(session_->stop_cause(), StopCause::kSignal);
}

TEST_F(SessionTest, NoServerForTheGraceEndsTheRun) {
  options_.reattach_grace = milliseconds(50);
  server_->Start();
  Attach();
  server_->Stop();
  absl::Status full;
  while (full.ok()) full = spool_->Append("waits until the session gives up").status();
  EXPECT_EQ(full.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(session_->stop_cause(), StopCause::kServerLost);
  EXPECT_EQ(session_->requested(), Request::kPause) << "it leaves a checkpoint";
  EXPECT_FALSE(session_->Finish(milliseconds(1)));
}

TEST_F(SessionTest, WithoutAServerACheckpointThatCannotBeWrittenIsNotWaitedForForever) {
  options_.reattach_grace = options_.checkpoint_grace = milliseconds(50);
  server_->Start();
  Attach();
  server_->Stop();
  while (!session_->StopRequested()) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(session_->requested(), Request::kPause);
  while (session_->requested() != Request::kStop) std::this_thread::sleep_for(milliseconds(1));
}

TEST_F(SessionTest, RefusalThatStaysEndsTheRun) {
  options_.refusal_grace = milliseconds(50);
  server_->set_refusal({grpc::StatusCode::UNAUTHENTICATED, "wrong token"});
  server_->Start();
  session_ = std::make_unique<Session>(options_, spool_.get());
  EXPECT_THAT(session_->WaitForAssignment().status().ToString(), HasSubstr("wrong token"));
  EXPECT_EQ(session_->stop_cause(), StopCause::kRefused);
}

TEST_F(SessionTest, RefusalThatPassesDoesNoHarm) {
  server_->set_refusal({grpc::StatusCode::NOT_FOUND, "still reading the store"});
  server_->Start();
  session_ = std::make_unique<Session>(options_, spool_.get());
  ASSERT_TRUE(server_->WaitForHellos(3));
  server_->set_refusal(grpc::Status::OK);
  EXPECT_TRUE(session_->WaitForAssignment().ok());
}

TEST_F(SessionTest, ServerThatForgotRecordsIsNotObeyed) {
  options_.refusal_grace = milliseconds(50);
  server_->Start();
  Attach();
  Append(1, 10);
  ASSERT_TRUE(spool_->WaitUntilAcked(10, minutes(1)));
  server_->set_persisted_sequence_offset(-3);
  server_->Stop();
  server_->Start();
  absl::Status full;
  while (full.ok()) full = spool_->Append("waits until the session gives up").status();
  EXPECT_EQ(session_->stop_cause(), StopCause::kRefused);
  EXPECT_THAT(session_->stop_reason(), HasSubstr("had acknowledged 10"));
}

}  // namespace
}  // namespace normlab::trainer
