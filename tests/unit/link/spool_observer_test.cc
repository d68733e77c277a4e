#include "server/trainer/link/spool_observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace normlab::trainer {
namespace {

using testing::ElementsAre;
using worker::v1::Finished;
using worker::v1::Record;

class SpoolObserverTest : public testing::Test {
 protected:
  void SetUp() override { MakeSpool(Spool::kCapacityUnit); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void MakeSpool(uint64_t capacity) {
    spool_.reset();
    std::filesystem::remove_all(directory_);
    std::string name = testing::TempDir() + "observer-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    ASSERT_TRUE(Spool::Create(directory_ / "spool", capacity).ok());
    auto spool = Spool::Open(directory_ / "spool");
    ASSERT_TRUE(spool.ok());
    spool_ = *std::move(spool);
  }
  std::vector<Record> Records() {
    std::vector<Record> records;
    Spool::Cursor cursor = spool_->AckedCursor();
    spool_->Read(&cursor, {}, [&](uint64_t, std::string_view bytes) {
      ASSERT_TRUE(records.emplace_back().ParseFromArray(bytes.data(), bytes.size()));
    });
    return records;
  }

  std::filesystem::path directory_;
  std::unique_ptr<Spool> spool_;
  Request requested_ = Request::kGoOn;
};

TEST_F(SpoolObserverTest, EverythingBecomesARecordInItsOrder) {
  SpoolObserver observer(spool_.get(), [this] { return requested_; });
  observer.OnModel({.parameter_count = 12, .instruction_set = "avx2"});
  const std::vector<std::string> names = {"loss", "gradient_norm"};
  observer.OnSeries(names);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  observer.OnStep(1, std::vector<Observation>{{0, 4.5}, {1, 2.25}});
  observer.OnStep(2, std::vector<Observation>{{1, nan}});
  Finished finished;
  finished.set_outcome(Finished::OUTCOME_DIVERGED);
  observer.Finish(finished);

  const std::vector<Record> records = Records();
  ASSERT_EQ(records.size(), 5U);
  EXPECT_EQ(records[0].model().parameter_count(), 12);
  EXPECT_EQ(records[0].model().instruction_set(), "avx2");
  EXPECT_THAT(records[1].series().names(), ElementsAre("loss", "gradient_norm"));
  EXPECT_EQ(records[2].step().step(), 1);
  EXPECT_THAT(records[2].step().series(), ElementsAre(0U, 1U));
  EXPECT_THAT(records[2].step().values(), ElementsAre(4.5, 2.25));
  EXPECT_THAT(records[3].step().series(), ElementsAre(1U));
  EXPECT_TRUE(std::isnan(records[3].step().values(0)));
  EXPECT_EQ(records[4].finished().outcome(), Finished::OUTCOME_DIVERGED);
  EXPECT_EQ(observer.last_step(), 2);
}

TEST_F(SpoolObserverTest, ACheckpointIsARecordBehindItsStep) {
  SpoolObserver observer(spool_.get(), [] { return Request::kPause; });
  observer.OnStep(7, std::vector<Observation>{{0, 4.5}});
  observer.OnCheckpoint(7, "step-7.safetensors", 1234);
  const std::vector<Record> records = Records();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].checkpoint().step(), 7);
  EXPECT_EQ(records[1].checkpoint().file(), "step-7.safetensors");
  EXPECT_EQ(records[1].checkpoint().bytes(), 1234);
}

TEST_F(SpoolObserverTest, RequestsArePassedOn) {
  SpoolObserver observer(spool_.get(), [this] { return requested_; });
  EXPECT_EQ(observer.Requested(), Request::kGoOn);
  for (const Request request : {Request::kPause, Request::kStop}) {
    requested_ = request;
    EXPECT_EQ(observer.Requested(), request);
  }
}

TEST_F(SpoolObserverTest, InterruptedWaitEndsTheRunBeforeTheStepThatFoundNoRoom) {
  SpoolObserver observer(spool_.get(), [] { return Request::kGoOn; });
  const std::vector<Observation> observations(20);
  std::thread trainer([&] {
    for (int64_t step = 1; observer.Requested() == Request::kGoOn; ++step) observer.OnStep(step, observations);
  });
  spool_->Interrupt();
  trainer.join();
  observer.OnStep(1000000, observations);  // more than asked for changes nothing
  observer.OnCheckpoint(1000000, "a", 1);
  Finished finished;
  finished.set_outcome(Finished::OUTCOME_STOPPED);
  finished.set_last_step(observer.last_step());
  observer.Finish(finished);
  const std::vector<Record> records = Records();
  ASSERT_GT(records.size(), 100U);
  EXPECT_TRUE(records.back().has_finished());
  EXPECT_EQ(records[records.size() - 2].step().step(), observer.last_step());
}

TEST_F(SpoolObserverTest, RecordTooLargeForTheSpoolIsAFault) {
  SpoolObserver observer(spool_.get(), [] { return Request::kGoOn; });
  const std::vector<std::string> names = {std::string(spool_->max_record_bytes() + 1, 'x')};
  EXPECT_THROW(observer.OnSeries(names), std::runtime_error);
}

TEST_F(SpoolObserverTest, StepTakesMicroseconds) {
  MakeSpool(Spool::kDefaultCapacity);
  SpoolObserver observer(spool_.get(), [] { return Request::kGoOn; });
  std::vector<Observation> observations;
  for (uint32_t i = 0; i < 8; ++i) observations.push_back({i, 1.0 / (i + 1)});
  constexpr int64_t kSteps = 200000;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t step = 1; step <= kSteps; ++step) {
    observer.OnStep(step, observations);
    if (step % 1000 != 0) continue;
    ASSERT_TRUE(spool_->Ack(spool_->last_sequence()).ok());
  }
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
  std::printf("%.0f ns a step of 8 numbers\n", static_cast<double>(took.count()) / kSteps);
  EXPECT_LT(took / kSteps, std::chrono::microseconds(50));  // loose: machines are shared
}

}  // namespace
}  // namespace normlab::trainer
