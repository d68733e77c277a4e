// An app::Api whose answers a test writes, with a real pool of threads behind it.
//
//   FakeApi api;
//   api.get_run = [](const v1::GetRunRequest& request) { return SomeRun(request.id()); };
//   api.feed()->Push(event, "token");   // what every watch sees
#ifndef NORMLAB_TESTS_FAKES_FAKE_API_H_
#define NORMLAB_TESTS_FAKES_FAKE_API_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/app/api.h"

namespace normlab::testing {

// The events that all watches of a FakeApi read, from the first on. Any thread.
class FakeFeed {
 public:
  void Push(v1::WatchRunsResponse message, std::string token = "") {
    auto event = std::make_shared<const domain::Event>(0, "", std::move(message));
    Change([&] { events_.push_back({std::move(event), std::move(token)}); });
  }
  // Watches end when they have read everything.
  void Finish() {
    Change([&] { finished_ = true; });
  }
  // Watches fail when they have read everything.
  void Break(absl::Status error) {
    Change([&] { error_ = std::move(error); });
  }
  void AwaitWatches(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return watches_ == count; });
  }
  // Until somebody has read all events.
  void AwaitReader() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return drained_; });
  }
  size_t batch_size = 100;  // set before the first watch

 private:
  friend class FakeWatch;

  template <typename Function>
  void Change(Function change) {
    std::map<const void*, std::function<void()>> wakes;
    {
      const std::lock_guard lock(mutex_);
      change();
      drained_ = false;
      wakes = wakes_;
    }
    for (const auto& [watch, wake] : wakes) wake();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<app::WatchedEvent> events_;
  std::map<const void*, std::function<void()>> wakes_;
  absl::Status error_;
  size_t watches_ = 0;
  bool drained_ = false;
  bool finished_ = false;
};

class FakeWatch : public app::Watch {
 public:
  explicit FakeWatch(std::shared_ptr<FakeFeed> feed) : feed_(std::move(feed)) {
    const std::lock_guard lock(feed_->mutex_);
    ++feed_->watches_;
    feed_->changed_.notify_all();
  }
  ~FakeWatch() override {
    const std::lock_guard lock(feed_->mutex_);
    feed_->wakes_.erase(this);
    --feed_->watches_;
    feed_->changed_.notify_all();
  }
  absl::StatusOr<std::vector<app::WatchedEvent>> Next() override {
    const std::lock_guard lock(feed_->mutex_);
    std::vector<app::WatchedEvent> batch;
    while (next_ < feed_->events_.size() && batch.size() < feed_->batch_size) {
      batch.push_back(feed_->events_[next_++]);
    }
    const bool all = next_ == feed_->events_.size();
    if (batch.empty() && !feed_->error_.ok()) return feed_->error_;
    finished_ = all && feed_->finished_;
    if (all) {
      feed_->drained_ = true;
      feed_->changed_.notify_all();
    }
    return batch;
  }
  std::optional<std::vector<app::WatchedEvent>> NextLive() override {
    absl::StatusOr<std::vector<app::WatchedEvent>> batch = Next();
    if (!batch.ok()) return std::nullopt;  // Next says why
    return *std::move(batch);
  }
  bool more() const override {
    const std::lock_guard lock(feed_->mutex_);
    return next_ < feed_->events_.size() || !feed_->error_.ok();
  }
  bool finished() const override { return finished_; }
  void OnReady(std::function<void()> wake) override {
    const std::lock_guard lock(feed_->mutex_);
    if (wake) {
      feed_->wakes_[this] = std::move(wake);
    } else {
      feed_->wakes_.erase(this);
    }
  }

 private:
  const std::shared_ptr<FakeFeed> feed_;
  size_t next_ = 0;
  bool finished_ = false;
};

class FakeApi : public app::Api {
 public:
  // What answers each call; a test replaces what it looks at.
  template <typename Request, typename Response>
  using Answer = std::function<absl::StatusOr<Response>(const Request&)>;

  Answer<v1::CreateRunRequest, v1::Run> create_run;
  Answer<v1::GetRunRequest, v1::Run> get_run;
  Answer<v1::ListRunsRequest, v1::ListRunsResponse> list_runs;
  Answer<v1::UpdateRunRequest, v1::Run> update_run;
  std::function<absl::Status(const v1::DeleteRunRequest&)> delete_run;
  Answer<v1::PruneRunsRequest, v1::PruneRunsResponse> prune_runs;
  Answer<v1::HoldRunRequest, v1::Run> hold_run;
  Answer<v1::ReleaseRunRequest, v1::Run> release_run;
  Answer<v1::MoveRunRequest, v1::Run> move_run;
  Answer<v1::CancelRunRequest, v1::Run> cancel_run;
  Answer<v1::PauseRunRequest, v1::Run> pause_run;
  Answer<v1::ResumeRunRequest, v1::Run> resume_run;
  Answer<v1::RetryRunRequest, v1::Run> retry_run;
  Answer<v1::ProbeRunRequest, v1::Run> probe_run;
  Answer<v1::ReadSeriesRequest, v1::ReadSeriesResponse> read_series;
  Answer<v1::ReadLogRequest, v1::ReadLogResponse> read_log;
  // OK lets the watch begin.
  std::function<absl::Status(const v1::WatchRunsRequest&)> watch_runs;
  Answer<v1::CreateExperimentRequest, v1::Experiment> create_experiment;
  Answer<v1::GetExperimentRequest, v1::Experiment> get_experiment;
  Answer<v1::CancelExperimentRequest, v1::Experiment> cancel_experiment;
  Answer<v1::ListExperimentsRequest, v1::ListExperimentsResponse> list_experiments;
  Answer<v1::ExchangeLoginCodeRequest, v1::ExchangeLoginCodeResponse> exchange_login_code;
  Answer<v1::ListUsersRequest, v1::ListUsersResponse> list_users;
  Answer<v1::CreateUserRequest, v1::CreateUserResponse> create_user;
  Answer<v1::UpdateUserRequest, v1::User> update_user;
  std::function<absl::Status(const v1::DeleteUserRequest&)> delete_user;
  Answer<v1::RotateTokenRequest, v1::RotateTokenResponse> rotate_token;
  Answer<v1::ListAuditEventsRequest, v1::ListAuditEventsResponse> list_audit_events;
  std::string latest_origin;  // of the latest ListAuditEvents
  v1::ListPresetsResponse presets;
  v1::ListDevicesResponse devices;
  Answer<v1::GetQueueRequest, v1::Queue> get_queue;
  v1::Storage storage;
  std::vector<std::string> problems;
  app::ServerMetrics metrics;

  static constexpr char kToken[] = "owner-token";

  FakeApi() {
    for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { Work(); });
  }
  ~FakeApi() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  const std::shared_ptr<FakeFeed>& feed() { return feed_; }

  absl::StatusOr<app::Principal> Authenticate(std::string_view token,
                                              std::string_view origin) override {
    if (token != kToken) return absl::UnauthenticatedError("nobody has this token");
    return app::Principal{"owner", "admin", std::string(origin)};
  }
  absl::StatusOr<v1::Run> CreateRun(const app::Principal&,
                                    const v1::CreateRunRequest& request) override {
    return Ask(create_run, request);
  }
  absl::StatusOr<v1::Run> GetRun(const app::Principal&, const v1::GetRunRequest& request) override {
    return Ask(get_run, request);
  }
  absl::StatusOr<v1::ListRunsResponse> ListRuns(const app::Principal&,
                                                const v1::ListRunsRequest& request) override {
    return Ask(list_runs, request);
  }
  absl::StatusOr<v1::Run> UpdateRun(const app::Principal&,
                                    const v1::UpdateRunRequest& request) override {
    return Ask(update_run, request);
  }
  absl::Status DeleteRun(const app::Principal&, const v1::DeleteRunRequest& request) override {
    if (!delete_run) return absl::UnimplementedError("the test has no answer for this");
    return delete_run(request);
  }
  absl::StatusOr<v1::PruneRunsResponse> PruneRuns(const app::Principal&,
                                                  const v1::PruneRunsRequest& request) override {
    return Ask(prune_runs, request);
  }
  absl::StatusOr<v1::Run> HoldRun(const app::Principal&,
                                  const v1::HoldRunRequest& request) override {
    return Ask(hold_run, request);
  }
  absl::StatusOr<v1::Run> ReleaseRun(const app::Principal&,
                                     const v1::ReleaseRunRequest& request) override {
    return Ask(release_run, request);
  }
  absl::StatusOr<v1::Run> MoveRun(const app::Principal&,
                                  const v1::MoveRunRequest& request) override {
    return Ask(move_run, request);
  }
  absl::StatusOr<v1::Run> CancelRun(const app::Principal&,
                                    const v1::CancelRunRequest& request) override {
    return Ask(cancel_run, request);
  }
  absl::StatusOr<v1::Run> PauseRun(const app::Principal&,
                                   const v1::PauseRunRequest& request) override {
    return Ask(pause_run, request);
  }
  absl::StatusOr<v1::Run> ResumeRun(const app::Principal&,
                                    const v1::ResumeRunRequest& request) override {
    return Ask(resume_run, request);
  }
  absl::StatusOr<v1::Run> RetryRun(const app::Principal&,
                                   const v1::RetryRunRequest& request) override {
    return Ask(retry_run, request);
  }
  absl::StatusOr<v1::Run> ProbeRun(const app::Principal&,
                                   const v1::ProbeRunRequest& request) override {
    return Ask(probe_run, request);
  }
  absl::StatusOr<app::OpenCheckpoint> ReadCheckpoint(const app::Principal&,
                                                     const v1::ReadCheckpointRequest&) override {
    return absl::UnimplementedError("the test has no answer for this");
  }
  absl::StatusOr<v1::ReadLogResponse> ReadLog(const app::Principal&,
                                              const v1::ReadLogRequest& request) override {
    return Ask(read_log, request);
  }
  absl::StatusOr<v1::ReadSeriesResponse> ReadSeries(const app::Principal&,
                                                    const v1::ReadSeriesRequest& request) override {
    return Ask(read_series, request);
  }
  absl::StatusOr<std::unique_ptr<app::PointsReader>> ReadPoints(
      const app::Principal&, const v1::ReadPointsRequest&) override {
    return absl::UnimplementedError("the test has no answer for this");
  }
  absl::StatusOr<std::unique_ptr<app::Watch>> WatchRuns(
      const app::Principal&, const v1::WatchRunsRequest& request) override {
    if (watch_runs) {
      if (absl::Status status = watch_runs(request); !status.ok()) return status;
    }
    return std::make_unique<FakeWatch>(feed_);
  }
  absl::StatusOr<v1::Experiment> CreateExperiment(
      const app::Principal&, const v1::CreateExperimentRequest& request) override {
    return Ask(create_experiment, request);
  }
  absl::StatusOr<v1::Experiment> GetExperiment(const app::Principal&,
                                               const v1::GetExperimentRequest& request) override {
    return Ask(get_experiment, request);
  }
  absl::StatusOr<v1::Experiment> CancelExperiment(
      const app::Principal&, const v1::CancelExperimentRequest& request) override {
    return Ask(cancel_experiment, request);
  }
  absl::StatusOr<v1::ListExperimentsResponse> ListExperiments(
      const app::Principal&, const v1::ListExperimentsRequest& request) override {
    return Ask(list_experiments, request);
  }
  absl::StatusOr<v1::ListPresetsResponse> ListPresets(const app::Principal&) override {
    return presets;
  }
  absl::StatusOr<v1::Device> UpdateDevice(const app::Principal&,
                                          const v1::UpdateDeviceRequest& request) override {
    v1::Device device;
    device.set_id(request.id());
    device.set_unavailable_reason(request.drain_reason());
    return device;
  }
  absl::StatusOr<v1::ListDevicesResponse> ListDevices(const app::Principal&) override {
    return devices;
  }
  absl::StatusOr<v1::Queue> GetQueue(const app::Principal&,
                                     const v1::GetQueueRequest& request) override {
    return Ask(get_queue, request);
  }
  absl::StatusOr<v1::User> GetMe(const app::Principal& who) override {
    v1::User user;
    user.set_name(who.user);
    user.set_role(who.role);
    return user;
  }
  absl::StatusOr<v1::CreateLoginCodeResponse> CreateLoginCode(const app::Principal&) override {
    v1::CreateLoginCodeResponse response;
    response.set_code("the-code");
    return response;
  }
  absl::StatusOr<v1::ExchangeLoginCodeResponse> ExchangeLoginCode(
      const v1::ExchangeLoginCodeRequest& request, std::string_view) override {
    return Ask(exchange_login_code, request);
  }
  absl::StatusOr<v1::ListUsersResponse> ListUsers(const app::Principal&,
                                                  const v1::ListUsersRequest& request) override {
    return Ask(list_users, request);
  }
  absl::StatusOr<v1::CreateUserResponse> CreateUser(const app::Principal&,
                                                    const v1::CreateUserRequest& request) override {
    return Ask(create_user, request);
  }
  absl::StatusOr<v1::User> UpdateUser(const app::Principal&,
                                      const v1::UpdateUserRequest& request) override {
    return Ask(update_user, request);
  }
  absl::Status DeleteUser(const app::Principal&, const v1::DeleteUserRequest& request) override {
    if (!delete_user) return absl::UnimplementedError("the test has no answer for this");
    return delete_user(request);
  }
  absl::StatusOr<v1::RotateTokenResponse> RotateToken(
      const app::Principal&, const v1::RotateTokenRequest& request) override {
    return Ask(rotate_token, request);
  }
  absl::StatusOr<v1::ListAuditEventsResponse> ListAuditEvents(
      const app::Principal& who, const v1::ListAuditEventsRequest& request) override {
    latest_origin = who.origin;
    return Ask(list_audit_events, request);
  }
  absl::StatusOr<v1::Storage> GetStorage(const app::Principal&) override { return storage; }
  void Backup(const app::Principal&, app::TellBackup, app::TaskDone done) override {
    done(absl::UnimplementedError("the test has no answer for this"));
  }
  void CheckStorage(const app::Principal&, app::TellCheck, app::TaskDone done) override {
    done(absl::UnimplementedError("the test has no answer for this"));
  }
  void CompactStorage(const app::Principal&, app::TellCompact, app::TaskDone done) override {
    done(absl::UnimplementedError("the test has no answer for this"));
  }
  std::vector<std::string> Problems() override { return problems; }
  app::ServerMetrics Metrics() override { return metrics; }
  void NoteStalled(std::string_view) override { ++stalled; }
  std::atomic<int> stalled = 0;
  void PostRead(std::function<void()> work) override { Post(std::move(work)); }

  void Post(std::function<void()> work) override {
    {
      const std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
    }
    changed_.notify_one();
  }

 private:
  template <typename Request, typename Response>
  static absl::StatusOr<Response> Ask(const Answer<Request, Response>& answer,
                                      const Request& request) {
    if (!answer) return absl::UnimplementedError("the test has no answer for this");
    return answer(request);
  }
  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ended_ || !work_.empty(); });
      if (work_.empty()) return;
      std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
    }
  }

  const std::shared_ptr<FakeFeed> feed_ = std::make_shared<FakeFeed>();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace normlab::testing

#endif  // NORMLAB_TESTS_FAKES_FAKE_API_H_
