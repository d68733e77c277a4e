// The api of a running server: what its parts do, put together.
#ifndef NORMLAB_SERVER_APP_SERVER_API_H_
#define NORMLAB_SERVER_APP_SERVER_API_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/app/api.h"
#include "server/app/dispatcher.h"
#include "server/app/early_stopper.h"
#include "server/app/failed_logins.h"
#include "server/app/garbage_sweep.h"
#include "server/app/pool.h"
#include "server/app/problems.h"
#include "server/app/progress_board.h"
#include "server/app/run_files.h"
#include "server/app/storage_tasks.h"
#include "server/app/users.h"
#include "server/base/clock.h"
#include "server/base/ids.h"
#include "server/domain/spec.h"
#include "server/storage/lineage.h"
#include "server/storage/queue_changes.h"
#include "server/storage/runs.h"
#include "server/storage/store.h"
#include "server/storage/writer.h"
#include "server/stream/hub.h"

namespace normlab::app {

class ServerApi : public Api {
 public:
  struct Parts {
    storage::Store& store;
    stream::Hub& hub;
    Dispatcher& dispatcher;
    scheduler::DeviceBoard& devices;
    const RunFiles& files;
    GarbageSweep& sweep;
    EarlyStopper& early_stopper;
    Users& users;
    ProgressBoard& progress;
    Pool& pool;
    Pool& reads;  // for what may take long
    const Clock& clock;
    domain::MachineLimits limits;
    app::Problems& problems;
    StorageTasks& storage_tasks;
    std::filesystem::path data_dir;
  };
  explicit ServerApi(Parts parts);

  // Where the dashboard is, for login links: "http://127.0.0.1:8710".
  void set_dashboard_url(std::string url) { dashboard_url_ = std::move(url); }

  absl::StatusOr<Principal> Authenticate(std::string_view token, std::string_view origin) override;
  absl::StatusOr<v1::Run> CreateRun(const Principal&, const v1::CreateRunRequest&) override;
  absl::StatusOr<v1::Run> GetRun(const Principal&, const v1::GetRunRequest&) override;
  absl::StatusOr<v1::ListRunsResponse> ListRuns(const Principal&,
                                                const v1::ListRunsRequest&) override;
  absl::StatusOr<v1::Run> UpdateRun(const Principal&, const v1::UpdateRunRequest&) override;
  absl::Status DeleteRun(const Principal&, const v1::DeleteRunRequest&) override;
  absl::StatusOr<v1::PruneRunsResponse> PruneRuns(const Principal&,
                                                  const v1::PruneRunsRequest&) override;
  absl::StatusOr<v1::Run> HoldRun(const Principal&, const v1::HoldRunRequest&) override;
  absl::StatusOr<v1::Run> ReleaseRun(const Principal&, const v1::ReleaseRunRequest&) override;
  absl::StatusOr<v1::Run> MoveRun(const Principal&, const v1::MoveRunRequest&) override;
  absl::StatusOr<v1::Run> CancelRun(const Principal&, const v1::CancelRunRequest&) override;
  absl::StatusOr<v1::Run> PauseRun(const Principal&, const v1::PauseRunRequest&) override;
  absl::StatusOr<v1::Run> ResumeRun(const Principal&, const v1::ResumeRunRequest&) override;
  absl::StatusOr<v1::Run> RetryRun(const Principal&, const v1::RetryRunRequest&) override;
  absl::StatusOr<v1::Run> ProbeRun(const Principal&, const v1::ProbeRunRequest&) override;
  absl::StatusOr<OpenCheckpoint> ReadCheckpoint(const Principal&,
                                                const v1::ReadCheckpointRequest&) override;
  absl::StatusOr<v1::ReadLogResponse> ReadLog(const Principal&, const v1::ReadLogRequest&) override;
  absl::StatusOr<v1::ReadSeriesResponse> ReadSeries(const Principal&,
                                                    const v1::ReadSeriesRequest&) override;
  absl::StatusOr<std::unique_ptr<PointsReader>> ReadPoints(const Principal&,
                                                           const v1::ReadPointsRequest&) override;
  absl::StatusOr<std::unique_ptr<Watch>> WatchRuns(const Principal&,
                                                   const v1::WatchRunsRequest&) override;
  absl::StatusOr<v1::Experiment> CreateExperiment(const Principal&,
                                                  const v1::CreateExperimentRequest&) override;
  absl::StatusOr<v1::Experiment> GetExperiment(const Principal&,
                                               const v1::GetExperimentRequest&) override;
  absl::StatusOr<v1::Experiment> CancelExperiment(const Principal&,
                                                  const v1::CancelExperimentRequest&) override;
  absl::StatusOr<v1::ListExperimentsResponse> ListExperiments(
      const Principal&, const v1::ListExperimentsRequest&) override;
  absl::StatusOr<v1::ListPresetsResponse> ListPresets(const Principal&) override;
  absl::StatusOr<v1::ListDevicesResponse> ListDevices(const Principal&) override;
  absl::StatusOr<v1::Queue> GetQueue(const Principal&, const v1::GetQueueRequest&) override;
  absl::StatusOr<v1::Device> UpdateDevice(const Principal&,
                                          const v1::UpdateDeviceRequest&) override;
  absl::StatusOr<v1::User> GetMe(const Principal&) override;
  absl::StatusOr<v1::CreateLoginCodeResponse> CreateLoginCode(const Principal&) override;
  absl::StatusOr<v1::ExchangeLoginCodeResponse> ExchangeLoginCode(
      const v1::ExchangeLoginCodeRequest&, std::string_view origin) override;
  absl::StatusOr<v1::ListUsersResponse> ListUsers(const Principal&,
                                                  const v1::ListUsersRequest&) override;
  absl::StatusOr<v1::CreateUserResponse> CreateUser(const Principal&,
                                                    const v1::CreateUserRequest&) override;
  absl::StatusOr<v1::User> UpdateUser(const Principal&, const v1::UpdateUserRequest&) override;
  absl::Status DeleteUser(const Principal&, const v1::DeleteUserRequest&) override;
  absl::StatusOr<v1::RotateTokenResponse> RotateToken(const Principal&,
                                                      const v1::RotateTokenRequest&) override;
  absl::StatusOr<v1::ListAuditEventsResponse> ListAuditEvents(
      const Principal&, const v1::ListAuditEventsRequest&) override;
  absl::StatusOr<v1::Storage> GetStorage(const Principal&) override;
  void Backup(const Principal&, TellBackup tell, TaskDone done) override;
  void CheckStorage(const Principal&, TellCheck tell, TaskDone done) override;
  void CompactStorage(const Principal&, TellCompact tell, TaskDone done) override;
  std::vector<std::string> Problems() override { return parts_.problems.Current(); }
  ServerMetrics Metrics() override;
  void Post(std::function<void()> work) override { parts_.pool.Post(std::move(work)); }
  void PostRead(std::function<void()> work) override { parts_.reads.Post(std::move(work)); }
  void NoteStalled(std::string_view peer) override;

 private:
  // A run as it will be stored, or everything that is wrong with `wanted`; fields of the
  // violations begin with `prefix`.
  v1::Run Prepare(const Principal& principal, const v1::Run& wanted, const std::string& prefix,
                  std::vector<domain::FieldViolation>& wrong);
  void CheckDevices(const std::string& prefix, const v1::Run& run,
                    std::vector<domain::FieldViolation>& wrong) const;
  // The runs of a new experiment as they will be stored, without ids.
  absl::StatusOr<std::vector<v1::Run>> PrepareRuns(const Principal& principal,
                                                   const v1::CreateExperimentRequest& request);
  // Finds the files that data and init_from name; a run in the latter is then named by its id.
  void CheckFiles(const std::string& prefix, v1::RunSpec& effective,
                  std::vector<domain::FieldViolation>& wrong);
  // Run and step of the latest checkpoint of the run that `text` stands for.
  absl::StatusOr<storage::Checkpoint> FindCheckpoint(const std::string& text);
  // Before runs are stored: keeps the checkpoints of other runs that they start from, or none.
  absl::Status KeepInits(const std::vector<v1::Run>& runs);
  // Those of `ids` that may be pruned, each with its attempts; adds to the answer what is kept and
  // how large the others are.
  absl::StatusOr<std::vector<v1::Run>> PrunableOf(const Principal& principal,
                                                  const v1::PruneRunsRequest& request,
                                                  const std::vector<std::string>& ids,
                                                  v1::PruneRunsResponse& response);
  absl::Status Prune(const domain::Actor& who, const v1::PruneRunsRequest& request,
                     const std::vector<v1::Run>& runs);
  // Notes who has the database copied, checked or compacted, if that is an admin.
  absl::Status AuditStorageTask(const Principal& principal, std::string_view action);
  absl::Status CheckOwner(const Principal& principal, const std::string& run);
  // NOT_FOUND when there is no such experiment, PERMISSION_DENIED when it is another's.
  absl::Status CheckExperimentOwner(const Principal& principal, const std::string& experiment);
  // INVALID_ARGUMENT for no id, NOT_FOUND for one that no run (or experiment) can have.
  static absl::Status CheckId(std::string_view field, const std::string& id);
  // What the calls that ask something of one run have in common.
  using Change = std::function<absl::Status(Dispatcher&, const std::string&, const domain::Actor&)>;
  absl::StatusOr<v1::Run> ChangeRun(const Principal& principal, const std::string& id,
                                    const Change& change);
  // In server_queue_changes.cc. What the calls that change a queued run have in common. `what` is
  // for the log and the audit, as is the detail; without one nothing has changed.
  absl::StatusOr<v1::Run> ChangeQueued(
      const Principal& principal, const std::string& id, std::string_view what,
      const std::function<absl::Status(storage::WriteContext&, std::string& detail)>& change);
  absl::StatusOr<v1::Run> SetHeld(const Principal& principal, const std::string& id,
                                  std::string_view what, const storage::QueueChange& change);
  // Adds what is wrong with priority and `after`.
  void CheckQueueFields(const v1::Run& wanted, const std::string& prefix,
                        std::vector<domain::FieldViolation>& wrong);
  // Whether runs, all of one user, may join the queue: what they wait for, and how many they are.
  // Fields of the i-th run begin with prefix(i).
  static absl::Status CheckQueueWords(storage::Database& database, const std::vector<v1::Run>& runs,
                                      const std::function<std::string(size_t)>& prefix);
  // Whether one more run of the user of `run` may be in the queue.
  absl::Status CheckQueueLimitOf(const std::string& run);

  // What only this server knows of a run: speed, place in the queue.
  void Complete(v1::Run& run);

  const Parts parts_;
  const std::chrono::steady_clock::time_point started_;
  std::atomic<uint64_t> stalled_watchers_ = 0;
  FailedLogins failed_logins_;
  std::string dashboard_url_;
  UlidGenerator ids_;
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_SERVER_API_H_
