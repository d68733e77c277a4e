// One attempt of a real process under the real shepherd, and a server that only trainers see.
#ifndef NORMLAB_TESTS_UNIT_LINK_ATTEMPT_FIXTURE_H_
#define NORMLAB_TESTS_UNIT_LINK_ATTEMPT_FIXTURE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "server/base/files.h"
#include "server/base/spool.h"
#include "server/executor/local_executor.h"
#include "tests/fakes/fake_worker_service.h"
#include "tests/unit/link/effective_spec.h"
#include "tests/fakes/temp_dir.h"

namespace normlab::trainer {

class AttemptFixture : public testing::Test {
 protected:
  explicit AttemptFixture(std::filesystem::path trainer) : trainer_(std::move(trainer)) {}

  void SetUp() override {
    unsetenv("NORMLAB_FAKE_ENGINE");
    MakeExecutor(0);
  }
  void MakeExecutor(int warm_trainers) {
    executor_ = std::make_unique<executor::LocalExecutor>(
        executor::LocalExecutorOptions{.shepherd_path = NORMLAB_SHEPHERD,
                                       .trainer_path = trainer_,
                                       .warm_trainers = warm_trainers,
                                       .warm_after = std::chrono::milliseconds(0)},
        [this](const auto&, const executor::ExitReport& report) {
          MutexLock lock(mutex_);
          report_ = report;
          changed_.NotifyAll();
        });
  }
  // From now on attempts become those of trainers that had waited; returns when one does.
  void KeepWarm() {
    executor_.reset();
    MakeExecutor(1);
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (executor_->WarmCount() == 0 && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_EQ(executor_->WarmCount(), 1);
  }
  void TearDown() override {
    executor_->Terminate(key_, std::chrono::milliseconds(0));
    if (launched_) WaitForExit();
    executor_.reset();
    server_.reset();
  }

  void StartServer(int64_t steps) { StartServerWith(EffectiveSpec(steps)); }
  void StartServerWith(const v1::RunSpec& spec) {
    server_ = std::make_unique<FakeWorkerServer>(root_, spec);
    server_->Start();
  }
  // The attempt after the one that has exited, in a folder of its own.
  void LaunchNext() {
    {
      MutexLock lock(mutex_);
      report_.reset();
    }
    ++key_.attempt;
    Launch();
  }
  void Launch() {
    const auto shepherd = executor_->Launch({.key = key_,
                                             .token = "secret",
                                             .device = "cpu:0",
                                             .gpu_uuid = "",
                                             .threads = threads_,
                                             .directory = Directory(),
                                             .endpoint_file = server_->endpoint_file()});
    ASSERT_TRUE(shepherd.ok()) << shepherd.status();
    launched_ = true;
  }
  executor::ExitReport WaitForExit() {
    MutexLock lock(mutex_);
    while (!report_) {
      if (!changed_.WaitFor(mutex_, std::chrono::minutes(1))) {
        ADD_FAILURE() << "no exit was reported";
        return {};
      }
    }
    return *report_;
  }
  pid_t TrainerPid() {
    return nlohmann::json::parse(ReadFile(Directory() / "shepherd.json").value_or("{}"))
        .value("trainer_pid", 0);
  }
  // What the server has, and then what only the spool has: all that was ever recorded.
  std::vector<worker::v1::Record> AllRecords() {
    std::vector<std::string> all = server_->records();
    auto reader = SpoolReader::Open(Directory() / "spool");
    EXPECT_TRUE(reader.ok()) << reader.status();
    while (reader.ok() && reader->Next()) {
      if (reader->sequence() <= all.size()) continue;
      EXPECT_EQ(reader->sequence(), all.size() + 1);
      all.emplace_back(reader->bytes());
    }
    EXPECT_TRUE(reader->status().ok()) << reader->status();
    std::vector<worker::v1::Record> records(all.size());
    for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(records[i].ParseFromString(all[i]));
    return records;
  }
  // Steps count from `first` without a gap; returns the last.
  static int64_t LastStep(const std::vector<worker::v1::Record>& records, int64_t first = 1) {
    int64_t last = first - 1;
    for (const worker::v1::Record& record : records) {
      if (!record.has_step()) continue;
      EXPECT_EQ(record.step().step(), ++last);
    }
    return last;
  }

  const std::filesystem::path trainer_;
  std::filesystem::path Directory() const { return root_ / std::to_string(key_.attempt); }

  int32_t threads_ = 1;
  executor::AttemptKey key_ = {"01RUN", 1};
  const fakes::TempDir temporary_;
  const std::filesystem::path root_ = temporary_.path();
  std::unique_ptr<FakeWorkerServer> server_;
  std::unique_ptr<executor::LocalExecutor> executor_;
  bool launched_ = false;
  Mutex mutex_;
  CondVar changed_;
  std::optional<executor::ExitReport> report_;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_TESTS_UNIT_LINK_ATTEMPT_FIXTURE_H_
