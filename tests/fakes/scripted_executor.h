// An executor without processes: the test says when they end.
#ifndef NORMLAB_TESTS_FAKES_SCRIPTED_EXECUTOR_H_
#define NORMLAB_TESTS_FAKES_SCRIPTED_EXECUTOR_H_

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "server/executor/executor.h"

namespace normlab::fakes {

class ScriptedExecutor : public executor::Executor {
 public:
  explicit ScriptedExecutor(ExitCallback on_exit) : on_exit_(std::move(on_exit)) {}

  absl::StatusOr<executor::ProcessIdentity> Launch(
      const executor::LaunchRequest& request) override {
    std::lock_guard lock(mutex_);
    if (!refusal_.ok()) return refusal_;
    std::filesystem::create_directories(request.directory);
    launched_.push_back(request);
    changed_.notify_all();
    return executor::ProcessIdentity{4242, 1, "boot"};
  }
  absl::Status Adopt(const executor::AttemptKey& key, const executor::ProcessIdentity&,
                     const std::filesystem::path&) override {
    if (on_adopt_) on_adopt_();
    std::lock_guard lock(mutex_);
    adopted_.push_back(key);
    return absl::OkStatus();
  }
  std::optional<executor::ProcessIdentity> FindShepherd(const std::filesystem::path&) override {
    return std::nullopt;
  }
  void Terminate(const executor::AttemptKey& key, std::chrono::milliseconds) override {
    std::lock_guard lock(mutex_);
    terminated_.push_back(key);
  }

  executor::LaunchRequest WaitForLaunch(size_t number) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(20),
                           [&] { return launched_.size() >= number; })) {
      throw std::runtime_error("no launch");
    }
    return launched_[number - 1];
  }
  void Exit(const executor::AttemptKey& key, const executor::ExitReport& report) {
    on_exit_(key, report);
  }
  // Called in Adopt. Set it before the executor is used.
  void OnAdopt(std::function<void()> call) { on_adopt_ = std::move(call); }
  void Refuse(absl::Status status) {
    std::lock_guard lock(mutex_);
    refusal_ = std::move(status);
  }
  std::vector<executor::AttemptKey> adopted() {
    std::lock_guard lock(mutex_);
    return adopted_;
  }
  std::vector<executor::AttemptKey> terminated() {
    std::lock_guard lock(mutex_);
    return terminated_;
  }
  size_t launches() {
    std::lock_guard lock(mutex_);
    return launched_.size();
  }

 private:
  const ExitCallback on_exit_;
  std::function<void()> on_adopt_;
  std::mutex mutex_;
  std::condition_variable changed_;
  absl::Status refusal_;
  std::vector<executor::LaunchRequest> launched_;
  std::vector<executor::AttemptKey> adopted_, terminated_;
};

}  // namespace normlab::fakes

#endif  // NORMLAB_TESTS_FAKES_SCRIPTED_EXECUTOR_H_
