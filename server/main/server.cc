#include "server/main/server.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "server/base/ids.h"
#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/domain/settings.h"
#include "server/executor/local_executor.h"
#include "server/executor/process_owner.h"
#include "server/executor/trainer_capabilities.h"
#include "server/main/version.h"
#include "server/scheduler/inventory.h"
#include "server/scheduler/nvml.h"
#include "server/storage/drained_devices.h"
#include "web/embed/assets.h"

namespace normlab::server {
namespace {

// Calls of the API, and reads that may take long: more of these would only slow each other.
constexpr int kPoolThreads = 4, kReadThreads = 2;

// For a trainer to say what it can do: a large library on a slow disk takes seconds to load.
constexpr std::chrono::seconds kCapabilitiesTimeout(20);

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

struct HostPort {
  std::string host;
  uint16_t port = 0;
};

absl::StatusOr<HostPort> ParseAddress(std::string_view option, const std::string& address) {
  const size_t colon = address.rfind(':');
  HostPort parsed;
  bool good = colon != std::string::npos && colon > 0;
  if (good) {
    const char* const end = address.data() + address.size();
    const auto [stop, error] = std::from_chars(address.data() + colon + 1, end, parsed.port);
    good = error == std::errc() && stop == end;
    parsed.host = address.substr(0, colon);
    if (parsed.host.starts_with('[') && parsed.host.ends_with(']')) {
      parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
    }
  }
  if (!good) {
    return absl::InvalidArgumentError(
        StrCat(option, " ", address, " is not HOST:PORT, such as 127.0.0.1:8710"));
  }
  return parsed;
}

std::string JoinAddress(const std::string& host, uint16_t port) {
  return host.find(':') == std::string::npos ? StrCat(host, ":", port)
                                             : StrCat("[", host, "]:", port);
}

std::filesystem::path OwnFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

// bin/normlabd has its texts in share/normlab/texts, built or installed.
std::filesystem::path ShippedTexts() {
  return OwnFolder().parent_path() / "share" / "normlab" / "texts";
}

std::optional<http::StaticFile> FindStaticFile(std::string_view path) {
  const web::Asset* asset = web::FindAsset(path);
  if (asset == nullptr) return std::nullopt;
  http::StaticFile file;
  file.content_type = asset->content_type;
  file.etag = asset->etag;
  file.bytes = asset->bytes;
  file.gzip = asset->gzip;
  file.immutable = asset->immutable;
  return file;
}

}  // namespace

absl::Status Server::Start() {
  if (auto status = MakePrivateDirectory(config_.data_dir); !status.ok()) return status;
  absl::StatusOr<FileLock> lock = FileLock::Take(config_.data_dir / "lock");
  if (!lock.ok()) return WhoIsThere(lock.status());
  lock_ = *std::move(lock);
  if (auto status = OpenStore(); !status.ok()) return status;
  if (auto status = StartParts(); !status.ok()) return status;
  absl::StatusOr<std::filesystem::path> socket = SocketPath();
  if (!socket.ok()) return socket.status();
  auto worker_service = std::make_unique<rpc::WorkerService>(*dispatcher_, *store_, *pool_);
  rpc::WatchLimits watching;
  watching.heartbeat = Milliseconds(config_.heartbeat_seconds);
  watching.stall_timeout = Milliseconds(config_.stall_timeout_seconds);
  rpc_ = std::make_unique<rpc::RpcServer>(*api_, std::move(worker_service), watching);
  if (auto parsed = ParseAddress("--grpc", config_.grpc).status(); !parsed.ok()) return parsed;
  if (auto status = StartHttp(); !status.ok()) return status;  // login links name its address
  if (auto status = rpc_->Start({config_.grpc, *socket}); !status.ok()) return status;
  // Trainers look here for their server, so it must be true before any of them is started.
  {
    MutexLock lock(endpoint_mutex_);
    endpoint_wanted_ = true;
    if (auto status = WriteEndpoint(); !status.ok()) return status;
  }
  if (auto status = dispatcher_->Start(); !status.ok()) return status;
  if (auto status = early_stopper_->Start(); !status.ok()) return status;
  // What deletions before the last stop have left.
  sweep_->Start();
  pool_->Post([this] { app::RemoveFilesOfDeletedRuns(*store_, *files_); });
  LogInfo("serving", {{"version", NORMLAB_VERSION},
                      {"http", http_url()},
                      {"grpc", rpc_->address()},
                      {"socket", socket->string()},
                      {"data", config_.data_dir.string()}});
  return absl::OkStatus();
}

// Says of the server that has the folder what its endpoint.json says; `taken` names its process.
absl::Status Server::WhoIsThere(const absl::Status& taken) const {
  const absl::StatusOr<std::string> text = ReadFile(config_.data_dir / "endpoint.json");
  if (!text.ok()) return taken;  // it does not serve yet, or is about to stop
  try {
    const nlohmann::json endpoint = nlohmann::json::parse(*text);
    const std::string holder = StrCat("process ", endpoint.at("pid").get<int64_t>());
    const std::string message(taken.message());
    if (!message.ends_with(holder)) return taken;  // left by another one
    const std::time_t since = endpoint.at("start_time").get<int64_t>() / 1'000'000;
    std::tm utc{};
    char time[32] = "";
    gmtime_r(&since, &utc);
    std::strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%SZ", &utc);
    return absl::Status(taken.code(),
                        StrCat(message, ", which serves http://",
                               endpoint.at("http").get<std::string>(), "/ since ", time));
  } catch (const nlohmann::json::exception&) {
    return taken;  // the file says nothing that can be told
  }
}

absl::Status Server::OpenStore() {
  storage::Store::Options options;
  options.path = config_.data_dir / "normlab.db";
  options.clock = &clock_;
  options.log_limits.name = config_.wal_notice_mib << 20;
  options.log_limits.hold = config_.wal_limit_mib << 20;
  // So that a log that nobody is in the way of stays below.
  options.log_limits.truncate = std::min(options.log_limits.truncate, options.log_limits.name / 2);
  options.log_limits.checkpoint =
      std::min(options.log_limits.checkpoint, options.log_limits.name / 8);
  options.publish = [this](const std::vector<domain::EventPtr>& events, uint64_t sequence) {
    progress_.Note(events);
    if (early_stopper_) early_stopper_->Note(events);
    if (hub_) hub_->Publish(events, sequence);
  };
  absl::StatusOr<std::unique_ptr<storage::Store>> store = storage::Store::Open(std::move(options));
  if (!store.ok()) return store.status();
  store_ = *std::move(store);
  hub_ = std::make_unique<stream::Hub>(store_->opened_at_sequence());
  early_stopper_ = std::make_unique<app::EarlyStopper>(
      *store_, [this](const std::string& run, const std::string& reason) {
        return dispatcher_->StopEarly(run, reason);
      });
  users_ = std::make_unique<app::Users>(*store_, clock_);
  // Whoever runs the server goes on without noticing that the owner's token was replaced.
  users_->OnOwnerToken([this] {
    MutexLock lock(endpoint_mutex_);
    if (!endpoint_wanted_) return;  // not yet, or being stopped
    if (absl::Status status = WriteEndpoint(); !status.ok()) {
      LogError("endpoint.json has the owner's old token; restart the server",
               {{"why", std::string(status.message())}});
    }
  });
  start_time_ = clock_.WallMicros();
  return users_->Load(config_.data_dir / "owner-token");
}

absl::Status Server::StartParts() {
  if (auto status = MakePrivateDirectory(config_.data_dir / "attempts"); !status.ok()) {
    return status;
  }
  const std::filesystem::path copies = config_.data_dir / "copies";
  if (auto status = MakePrivateDirectory(copies); !status.ok()) return status;
  problems_ = std::make_unique<app::Problems>(*store_, app::Problems::Options{config_.data_dir});
  storage_tasks_ = std::make_unique<app::StorageTasks>(*store_, copies);
  files_ = std::make_unique<app::RunFiles>(config_.data_dir,
                                           config_.texts.empty() ? ShippedTexts() : config_.texts);
  app::Dispatcher::Options options;
  options.data_dir = config_.data_dir;
  options.files = files_.get();
  if (auto status = StartDevices(); !status.ok()) return status;
  options.devices = devices_.get();
  options.progress = &progress_;
  options.clock = &clock_;
  options.cancel_grace = Milliseconds(config_.cancel_grace_seconds);
  options.checkpoint_grace = Milliseconds(config_.checkpoint_grace_seconds);
  executor::LocalExecutorOptions local;
  local.shepherd_path = config_.shepherd;
  local.trainer_path = config_.trainer;
  // A program of the user's may take what it is started for as an attempt.
  local.warm_trainers = static_cast<int>(config_.warm_trainers.value_or(config_.trainer.empty()));
  options.make_executor = [local](executor::Executor::ExitCallback on_exit) {
    return std::make_unique<executor::LocalExecutor>(local, std::move(on_exit));
  };
  int64_t cpu_slots = 0;
  for (const scheduler::Device& device : devices_->Devices()) {
    if (device.kind == scheduler::DeviceKind::kCpu) ++cpu_slots;
  }
  dispatcher_ = std::make_unique<app::Dispatcher>(*store_, std::move(options));
  WatchGpus();
  pool_ = std::make_unique<app::Pool>(kPoolThreads);
  sweep_ = std::make_unique<app::GarbageSweep>(*store_);
  reads_ = std::make_unique<app::Pool>(kReadThreads);
  api_ = std::make_unique<app::ServerApi>(app::ServerApi::Parts{
      *store_,
      *hub_,
      *dispatcher_,
      *devices_,
      *files_,
      *sweep_,
      *early_stopper_,
      *users_,
      progress_,
      *pool_,
      *reads_,
      clock_,
      {std::min(cpu_slots, scheduler::UsableCores()), scheduler::UsableMemory()},
      *problems_,
      *storage_tasks_,
      config_.data_dir});
  return absl::OkStatus();
}

// Asks the trainer only where there is a driver: it takes longer than everything else at a start.
scheduler::GpuUse Server::FindGpuUse() const {
  if (config_.gpus == "off") {
    return {.refusal = "the server was told to use no GPU (--gpus off)", .of_a_run = 0};
  }
  if (config_.gpus == "on" || gpu_driver_ == nullptr) return {};
  const std::filesystem::path trainer =
      config_.trainer.empty() ? OwnFolder() / "normlab-trainer" : config_.trainer;
  const auto can = executor::AskTrainer(trainer, kCapabilitiesTimeout);
  if (!can.ok()) {
    LogWarning("the trainer did not say what it can do",
               {{"trainer", trainer.string()}, {"error", std::string(can.status().message())}});
    return {.refusal = StrCat("the trainer does not say that it can use GPUs: ",
                              StdView(can.status().message())),
            .of_a_run = 0};
  }
  if (can->gpus == 0) {
    return {.refusal = "this normlab was built without CUDA (docs/gpu.md says how to build it in)",
            .of_a_run = 0};
  }
  return {.of_a_run = can->gpus};
}

absl::Status Server::StartDevices() {
  gpu_driver_ = scheduler::OpenNvml();
  devices_ = std::make_unique<scheduler::DeviceBoard>(scheduler::CpuSlots(config_.cpu_slots),
                                                      FindGpuUse());
  return store_->Read([this](storage::Database& database) {
    const auto drained = storage::ReadDrainedDevices(database);
    if (!drained.ok()) return drained.status();
    for (const auto& [device, reason] : *drained) devices_->Drain(device, reason);
    return absl::OkStatus();
  });
}

void Server::WatchGpus() {
  if (gpu_driver_ == nullptr) return;
  scheduler::GpuWatch::Options options;
  options.source = std::move(gpu_driver_);
  options.owner_of = [attempts = config_.data_dir / "attempts"](pid_t pid) {
    return executor::RunOfProcess(pid, attempts);
  };
  options.changed = [this](const scheduler::DeviceBoard::Changes& changes) {
    for (const auto& trouble : changes.troubles) dispatcher_->EndForTrouble(trouble);
    if (changes.more_room) dispatcher_->Wake();
  };
  options.clock = &clock_;
  gpu_watch_ = std::make_unique<scheduler::GpuWatch>(*devices_, std::move(options));
}

absl::Status Server::StartHttp() {
  const absl::StatusOr<HostPort> address = ParseAddress("--http", config_.http);
  if (!address.ok()) return address.status();
  http::HttpOptions options;
  options.host = address->host;
  options.port = address->port;
  options.allowed_hosts = config_.allowed_hosts;
  options.heartbeat = Milliseconds(config_.heartbeat_seconds);
  options.stall_timeout = Milliseconds(config_.stall_timeout_seconds);
  options.static_file = FindStaticFile;
  options.settings_json = domain::SettingsToJson;
  http_ = std::make_unique<http::HttpServer>(*api_, std::move(options));
  const absl::StatusOr<uint16_t> port = http_->Start();
  if (!port.ok()) return port.status();
  http_address_ = JoinAddress(address->host, *port);
  api_->set_dashboard_url(http_url());
  return absl::OkStatus();
}

std::string Server::http_url() const { return StrCat("http://", http_address_); }

// In the data folder, or, where that makes too long a path for a socket, in a private folder of
// this user's elsewhere; endpoint.json says where.
absl::StatusOr<std::filesystem::path> Server::SocketPath() const {
  std::filesystem::path socket = config_.socket;
  if (socket.empty()) socket = config_.data_dir / "sock" / "normlab.sock";
  if (config_.socket.empty() && socket.string().size() > rpc::RpcServer::kLongestSocketPath) {
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    const std::filesystem::path base =
        runtime != nullptr && *runtime == '/'
            ? std::filesystem::path(runtime) / "normlab"
            : std::filesystem::path(StrCat("/tmp/normlab-", geteuid()));
    if (auto status = MakePrivateDirectory(base); !status.ok()) return status;
    socket = base / Sha256Hex(config_.data_dir.string()).substr(0, 16) / "normlab.sock";
  }
  if (auto status = MakePrivateDirectory(socket.parent_path()); !status.ok()) return status;
  return socket;
}

absl::Status Server::WriteEndpoint() {
  const absl::StatusOr<std::filesystem::path> socket = SocketPath();
  if (!socket.ok()) return socket.status();
  const nlohmann::json endpoint = {{"http", http_address_},      {"grpc", rpc_->address()},
                                   {"socket", socket->string()}, {"pid", getpid()},
                                   {"start_time", start_time_},  {"token", users_->owner_token()}};
  return WritePrivateFile(config_.data_dir / "endpoint.json", endpoint.dump(2) + "\n");
}

absl::StatusOr<size_t> Server::StopRuns() { return dispatcher_->StopRuns(); }

void Server::Stop() {
  // First the faces, whose calls use everything behind them; then those who write.
  {
    MutexLock lock(endpoint_mutex_);
    if (std::exchange(endpoint_wanted_, false)) {
      unlink((config_.data_dir / "endpoint.json").c_str());
    }
  }
  if (storage_tasks_) storage_tasks_->BreakOff();
  if (http_) http_->Stop();
  if (rpc_) rpc_->Stop();
  if (storage_tasks_) storage_tasks_->Stop();
  if (early_stopper_) early_stopper_->Stop();
  gpu_watch_.reset();
  if (dispatcher_) dispatcher_->Stop();
  if (reads_) reads_->Stop();
  if (pool_) pool_->Stop();
  if (store_) store_->writer().Stop();
}

}  // namespace normlab::server
