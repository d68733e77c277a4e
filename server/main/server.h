// The server, put together: the one place that knows every part.
#ifndef NORMLAB_SERVER_MAIN_SERVER_H_
#define NORMLAB_SERVER_MAIN_SERVER_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/app/dispatcher.h"
#include "server/app/early_stopper.h"
#include "server/app/garbage_sweep.h"
#include "server/app/pool.h"
#include "server/app/problems.h"
#include "server/app/run_files.h"
#include "server/app/server_api.h"
#include "server/app/storage_tasks.h"
#include "server/app/users.h"
#include "server/base/clock.h"
#include "server/base/files.h"
#include "server/base/mutex.h"
#include "server/http/http_server.h"
#include "server/main/config.h"
#include "server/rpc/rpc_server.h"
#include "server/scheduler/device_board.h"
#include "server/scheduler/gpu_watch.h"
#include "server/storage/store.h"
#include "server/stream/hub.h"

namespace normlab::server {

class Server {
 public:
  explicit Server(Config config) : config_(std::move(config)) {}
  ~Server() { Stop(); }

  // Opens the data folder, takes over what an earlier server left running, serves, and says where
  // in endpoint.json. On an error, one line that names it, nothing is left behind.
  absl::Status Start();
  // Has runs that train write a checkpoint and go back into the queue, while everything is still
  // served. Returns how many are not there yet; to be called again until there are none.
  absl::StatusOr<size_t> StopRuns();
  // Stops serving; what trains goes on and is taken over by the next server.
  void Stop();

  std::string http_url() const;
  const std::string& grpc_address() const { return rpc_->address(); }

 private:
  absl::Status WhoIsThere(const absl::Status& taken) const;
  absl::Status OpenStore();
  absl::Status StartParts();
  scheduler::GpuUse FindGpuUse() const;
  absl::Status StartDevices();
  void WatchGpus();
  absl::Status StartHttp();
  absl::StatusOr<std::filesystem::path> SocketPath() const;
  absl::Status WriteEndpoint() ABSL_EXCLUSIVE_LOCKS_REQUIRED(endpoint_mutex_);

  Config config_;
  SystemClock clock_;
  std::optional<FileLock> lock_;
  std::unique_ptr<stream::Hub> hub_;
  app::ProgressBoard progress_;
  std::unique_ptr<app::GarbageSweep> sweep_;          // until nothing is written any more
  std::unique_ptr<app::EarlyStopper> early_stopper_;  // likewise
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<app::Problems> problems_;
  std::unique_ptr<app::StorageTasks> storage_tasks_;
  std::unique_ptr<app::Users> users_;
  std::unique_ptr<app::RunFiles> files_;
  std::unique_ptr<app::Pool> pool_, reads_;
  std::unique_ptr<scheduler::DeviceBoard> devices_;
  std::unique_ptr<app::Dispatcher> dispatcher_;
  std::unique_ptr<scheduler::GpuSource> gpu_driver_;  // where there is one, until it is watched
  std::unique_ptr<scheduler::GpuWatch> gpu_watch_;
  std::unique_ptr<app::ServerApi> api_;
  std::unique_ptr<rpc::RpcServer> rpc_;
  std::unique_ptr<http::HttpServer> http_;
  std::string http_address_;
  int64_t start_time_ = 0;  // microseconds since 1970
  // The file is written by whoever starts the server or replaces the owner's token, and removed by
  // whoever stops it: in one order, so that what stays is the latest.
  Mutex endpoint_mutex_;
  bool endpoint_wanted_ ABSL_GUARDED_BY(endpoint_mutex_) = false;
};

}  // namespace normlab::server

#endif  // NORMLAB_SERVER_MAIN_SERVER_H_
