// What can be asked of a server, whatever the wire: rpc/ and http/ are thin faces over this.
//
//   absl::StatusOr<Principal> who = api.Authenticate(bearer_token, peer);
//   absl::StatusOr<v1::Run> run = api.CreateRun(*who, request);
//
// Errors carry canonical codes; INVALID_ARGUMENT carries the wrong fields (domain/violations.h).
// Calls may wait for the disk (a commit, a read): make them on the api's own pool (`Post`), never
// on a thread that serves sockets.
#ifndef NORMLAB_SERVER_APP_API_H_
#define NORMLAB_SERVER_APP_API_H_

#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "normlab/v1/device_service.pb.h"
#include "normlab/v1/experiment_service.pb.h"
#include "normlab/v1/run_service.pb.h"
#include "normlab/v1/storage_service.pb.h"
#include "normlab/v1/user_service.pb.h"
#include "server/app/revocation.h"
#include "server/domain/actor.h"
#include "server/domain/event.h"

namespace normlab::app {

// Who asks.
struct Principal {
  std::string user;
  std::string role;         // viewer | member | admin
  std::string origin = {};  // the peer's address, or "unix socket"
  // Of the token that was shown; absent for what cannot be revoked.
  std::shared_ptr<Revocation> revocation = {};

  domain::Actor actor() const { return {user, origin}; }
};

// An event for one watcher: the shared event, and the token that is true once it was delivered
// (empty while a history is being sent).
struct WatchedEvent {
  domain::EventPtr event;
  std::string resume_token;
};

// One watcher's position in the streams it watches. Not thread-safe: one thread at a time.
class Watch {
 public:
  virtual ~Watch() = default;
  // The next events, or none when there is nothing at present. May read the database.
  virtual absl::StatusOr<std::vector<WatchedEvent>> Next() = 0;
  // The same without ever waiting for the disk, for the threads that serve sockets: nothing at all
  // when the database must be read, which is what Next is for.
  virtual std::optional<std::vector<WatchedEvent>> NextLive() = 0;
  // After one of these: true when there is more already, for which no bell may ring.
  virtual bool more() const = 0;
  // True once every watched run has ended and its last event was returned.
  virtual bool finished() const = 0;
  // `wake` is called, from any thread and possibly more than once, when Next has something to
  // return; it must be quick and must not call Next itself. Call with nullptr to be left alone.
  virtual void OnReady(std::function<void()> wake) = 0;
};

// Reads every point of a run in pieces. Not thread-safe: one thread at a time.
class PointsReader {
 public:
  virtual ~PointsReader() = default;
  // The next piece, nothing behind the last. Reads the database.
  virtual absl::StatusOr<std::optional<v1::ReadPointsResponse>> Next() = 0;
};

// A checkpoint's file, open: it stays readable when the run goes on and replaces it.
struct OpenCheckpoint {
  std::ifstream file;
  int64_t step = 0;
  int64_t bytes = 0;
};

// Numbers for /metrics.
struct ServerMetrics {
  int64_t queued_runs = 0;
  int64_t active_runs = 0;
  int64_t watchers = 0;
  uint64_t stalled_watchers = 0;  // detached since the start because they took nothing
  uint64_t points_stored = 0;     // since the start
  uint64_t commits = 0;           // since the start
  uint64_t sequence = 0;          // last one published
  double uptime_seconds = 0;
  bool writing_ok = true;   // no transaction failed in the last seconds
  int64_t log_bytes = 0;    // of the write-ahead log's file
  int64_t free_bytes = 0;   // on the disk of the data folder
  uint64_t slow_reads = 0;  // reads of the database beyond a second, since the start
};

// What a long task on the database says while it goes on: false when nobody wants to know any more,
// and then it is broken off. May wait. And its end.
using TellBackup = std::function<bool(v1::BackupResponse)>;
using TellCheck = std::function<bool(v1::CheckStorageResponse)>;
using TellCompact = std::function<bool(v1::CompactStorageResponse)>;
using TaskDone = std::function<void(const absl::Status&)>;

class Api {
 public:
  virtual ~Api() = default;

  // UNAUTHENTICATED with what to do about it, unless `token` is somebody's. `origin` is from where
  // it comes: the peer's address.
  virtual absl::StatusOr<Principal> Authenticate(std::string_view token,
                                                 std::string_view origin) = 0;

  virtual absl::StatusOr<v1::Run> CreateRun(const Principal&, const v1::CreateRunRequest&) = 0;
  virtual absl::StatusOr<v1::Run> GetRun(const Principal&, const v1::GetRunRequest&) = 0;
  virtual absl::StatusOr<v1::ListRunsResponse> ListRuns(const Principal&,
                                                        const v1::ListRunsRequest&) = 0;
  virtual absl::StatusOr<v1::Run> UpdateRun(const Principal&, const v1::UpdateRunRequest&) = 0;
  virtual absl::Status DeleteRun(const Principal&, const v1::DeleteRunRequest&) = 0;
  virtual absl::StatusOr<v1::PruneRunsResponse> PruneRuns(const Principal&,
                                                          const v1::PruneRunsRequest&) = 0;
  virtual absl::StatusOr<v1::Run> HoldRun(const Principal&, const v1::HoldRunRequest&) = 0;
  virtual absl::StatusOr<v1::Run> ReleaseRun(const Principal&, const v1::ReleaseRunRequest&) = 0;
  virtual absl::StatusOr<v1::Run> MoveRun(const Principal&, const v1::MoveRunRequest&) = 0;
  virtual absl::StatusOr<v1::Run> CancelRun(const Principal&, const v1::CancelRunRequest&) = 0;
  virtual absl::StatusOr<v1::Run> PauseRun(const Principal&, const v1::PauseRunRequest&) = 0;
  virtual absl::StatusOr<v1::Run> ResumeRun(const Principal&, const v1::ResumeRunRequest&) = 0;
  virtual absl::StatusOr<v1::Run> RetryRun(const Principal&, const v1::RetryRunRequest&) = 0;
  virtual absl::StatusOr<v1::Run> ProbeRun(const Principal&, const v1::ProbeRunRequest&) = 0;
  // The latest one of a run.
  virtual absl::StatusOr<OpenCheckpoint> ReadCheckpoint(const Principal&,
                                                        const v1::ReadCheckpointRequest&) = 0;
  virtual absl::StatusOr<v1::ReadLogResponse> ReadLog(const Principal&,
                                                      const v1::ReadLogRequest&) = 0;
  virtual absl::StatusOr<v1::ReadSeriesResponse> ReadSeries(const Principal&,
                                                            const v1::ReadSeriesRequest&) = 0;
  virtual absl::StatusOr<std::unique_ptr<PointsReader>> ReadPoints(
      const Principal&, const v1::ReadPointsRequest&) = 0;
  virtual absl::StatusOr<std::unique_ptr<Watch>> WatchRuns(const Principal&,
                                                           const v1::WatchRunsRequest&) = 0;

  virtual absl::StatusOr<v1::Experiment> CreateExperiment(const Principal&,
                                                          const v1::CreateExperimentRequest&) = 0;
  virtual absl::StatusOr<v1::Experiment> GetExperiment(const Principal&,
                                                       const v1::GetExperimentRequest&) = 0;
  virtual absl::StatusOr<v1::Experiment> CancelExperiment(const Principal&,
                                                          const v1::CancelExperimentRequest&) = 0;
  virtual absl::StatusOr<v1::ListExperimentsResponse> ListExperiments(
      const Principal&, const v1::ListExperimentsRequest&) = 0;
  virtual absl::StatusOr<v1::ListPresetsResponse> ListPresets(const Principal&) = 0;

  virtual absl::StatusOr<v1::ListDevicesResponse> ListDevices(const Principal&) = 0;
  virtual absl::StatusOr<v1::Queue> GetQueue(const Principal&, const v1::GetQueueRequest&) = 0;
  virtual absl::StatusOr<v1::Device> UpdateDevice(const Principal&,
                                                  const v1::UpdateDeviceRequest&) = 0;

  virtual absl::StatusOr<v1::User> GetMe(const Principal&) = 0;
  virtual absl::StatusOr<v1::CreateLoginCodeResponse> CreateLoginCode(const Principal&) = 0;
  // Needs no principal: the code stands for one. `origin` as for Authenticate.
  virtual absl::StatusOr<v1::ExchangeLoginCodeResponse> ExchangeLoginCode(
      const v1::ExchangeLoginCodeRequest&, std::string_view origin) = 0;
  virtual absl::StatusOr<v1::ListUsersResponse> ListUsers(const Principal&,
                                                          const v1::ListUsersRequest&) = 0;
  virtual absl::StatusOr<v1::CreateUserResponse> CreateUser(const Principal&,
                                                            const v1::CreateUserRequest&) = 0;
  virtual absl::StatusOr<v1::User> UpdateUser(const Principal&, const v1::UpdateUserRequest&) = 0;
  virtual absl::Status DeleteUser(const Principal&, const v1::DeleteUserRequest&) = 0;
  virtual absl::StatusOr<v1::RotateTokenResponse> RotateToken(const Principal&,
                                                              const v1::RotateTokenRequest&) = 0;
  virtual absl::StatusOr<v1::ListAuditEventsResponse> ListAuditEvents(
      const Principal&, const v1::ListAuditEventsRequest&) = 0;

  virtual absl::StatusOr<v1::Storage> GetStorage(const Principal&) = 0;
  // Long tasks, one at a time: they return at once, and call back on a thread of their own.
  virtual void Backup(const Principal&, TellBackup tell, TaskDone done) = 0;
  virtual void CheckStorage(const Principal&, TellCheck tell, TaskDone done) = 0;
  virtual void CompactStorage(const Principal&, TellCompact tell, TaskDone done) = 0;

  // What is wrong just now, one sentence a problem. Quick; any thread.
  virtual std::vector<std::string> Problems() = 0;
  virtual ServerMetrics Metrics() = 0;

  // Runs `work` soon on the api's pool. Any thread; never blocks.
  virtual void Post(std::function<void()> work) = 0;
  // The same for work that may read much (points, histories): it has threads of its own, so that
  // short calls never stand behind it.
  virtual void PostRead(std::function<void()> work) = 0;

  // Counts and logs that the watcher at `peer` was detached because it took nothing. Any thread.
  virtual void NoteStalled(std::string_view peer) = 0;
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_API_H_
