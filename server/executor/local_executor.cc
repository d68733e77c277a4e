#include "server/executor/local_executor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "server/base/files.h"
#include "server/base/log.h"
#include "server/base/spool.h"
#include "server/base/strings.h"
#include "server/executor/attempt_start.h"
#include "server/executor/exit_report.h"
#include "server/executor/process_owner.h"
#include "server/executor/shepherd_files.h"

namespace normlab::executor {
namespace {

constexpr std::chrono::milliseconds kLookAgain(50);
constexpr std::chrono::milliseconds kLookForFile(10);

// One spelling a folder: processes are found again by it.
std::filesystem::path Canonical(const std::filesystem::path& directory) {
  return std::filesystem::absolute(directory).lexically_normal();
}

// So that even the processes of a dead shepherd are known.
std::string Marker(const std::filesystem::path& directory) {
  return StrCat(kAttemptVariable, "=", directory.string());
}

std::filesystem::path Beside(const std::string& name) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / name;
}

// A lock that goes with the descriptor to whoever inherits it. FAILED_PRECONDITION while another
// process has it.
absl::StatusOr<UniqueFd> TakeLock(const std::filesystem::path& file, int flags) {
  UniqueFd lock(open(file.c_str(), O_RDWR | O_CLOEXEC | flags, 0600));
  if (!lock) return absl::ErrnoToStatus(errno, StrCat("cannot open ", file.string()));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(StrCat(file.string(), " is locked"));
  }
  return lock;
}

absl::Status AlreadyWatched(const AttemptKey& key) {
  return absl::AlreadyExistsError(
      StrCat("attempt ", key.attempt, " of run ", key.run, " is being watched already"));
}

// RESOURCE_EXHAUSTED when the disk has no room for it.
absl::Status ReserveExit(const std::filesystem::path& directory) {
  const UniqueFd folder(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const UniqueFd file(folder ? ReserveExitFile(folder.get()) : -1);
  if (file) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, StrCat("cannot reserve exit.json in ", directory.string()));
}

// Kills what a lost shepherd left behind; true while there is any.
bool KillStrays(const std::filesystem::path& directory) {
  bool any = false;
  for (const ProcessIdentity& stray : FindByEnvironment(Marker(directory))) {
    const absl::StatusOr<UniqueFd> process = OpenProcess(stray);
    if (process.ok()) any |= SignalProcess(*process, SIGKILL).ok();
  }
  return any;
}

}  // namespace

LocalExecutor::LocalExecutor(LocalExecutorOptions options, ExitCallback on_exit)
    : options_(std::move(options)),
      on_exit_(std::move(on_exit)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (options_.shepherd_path.empty()) options_.shepherd_path = Beside("normlab-shepherd");
  if (options_.trainer_path.empty()) options_.trainer_path = Beside("normlab-trainer");
  epoll_event event = {.events = EPOLLIN, .data = {}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
  if (options_.warm_trainers > 0) {
    warm_ = std::make_unique<WarmTrainers>(
        WarmTrainersOptions{.count = options_.warm_trainers,
                            .arguments = WarmArguments(options_),
                            .environment = [] { return WithServerEnvironment(WarmEnvironment()); },
                            .programs = {options_.shepherd_path, options_.trainer_path},
                            .quiet = options_.warm_after});
  }
  thread_ = std::thread([this] { WatchLoop(); });
}

LocalExecutor::~LocalExecutor() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

absl::StatusOr<ProcessIdentity> LocalExecutor::Launch(const LaunchRequest& request) {
  for (const std::filesystem::path& program : {options_.shepherd_path, options_.trainer_path}) {
    if (access(program.c_str(), X_OK) != 0) {
      return absl::FailedPreconditionError(
          StrCat("there is no program ", program.string(), ", or it may not be run"));
    }
  }
  if (IsWatched(request.key)) return AlreadyWatched(request.key);
  LaunchRequest prepared = request;
  prepared.directory = Canonical(request.directory);
  prepared.endpoint_file = Canonical(request.endpoint_file);
  if (absl::Status status = Prepare(prepared); !status.ok()) return status;
  absl::StatusOr<ProcessIdentity> shepherd = Start(prepared);
  if (warm_) warm_->Defer();
  if (!shepherd.ok()) unlink((prepared.directory / "spool").c_str());
  return shepherd;
}

absl::Status LocalExecutor::Prepare(const LaunchRequest& request) const {
  if (absl::Status status = MakePrivateDirectory(request.directory); !status.ok()) return status;
  // The spool first: it says whether there is room, and that no other Launch had this folder.
  absl::Status status = Spool::Create(request.directory / "spool", options_.spool_bytes);
  if (!status.ok()) return status;
  status = ReserveExit(request.directory);
  // No attempt outlives the machine's going down.
  if (status.ok()) {
    status = WritePrivateFile(request.directory / "token", request.token, Durability::kUntilReboot);
  }
  if (!status.ok()) unlink((request.directory / "spool").c_str());
  return status;
}

absl::StatusOr<ProcessIdentity> LocalExecutor::Start(const LaunchRequest& request) {
  // The shepherd has it before it can do anything, and as long as it lives.
  const absl::StatusOr<UniqueFd> lock = TakeLock(request.directory / "alive", O_CREAT);
  if (!lock.ok()) return lock.status();
  const std::vector<std::string> arguments = ShepherdArguments(options_, request);
  if (const auto warm = StartWarm(request, arguments, *lock)) return *warm;
  const absl::StatusOr<pid_t> pid = Spawn({
      .argv = arguments,
      .environment = WithServerEnvironment(AttemptEnvironment(request)),
      .directory = request.directory.string(),  // where a core file would go
      .inherited_fd = lock->get(),
      .block_signals = true,
  });
  if (!pid.ok()) return pid.status();
  absl::StatusOr<ProcessIdentity> identity = WatchChild(request, *pid);
  if (!identity.ok()) {
    // Nobody has waited for this child yet, so its number is its own. Its trainer dies with it.
    kill(*pid, SIGKILL);
    waitpid(*pid, nullptr, 0);
  }
  return identity;
}

std::optional<absl::StatusOr<ProcessIdentity>> LocalExecutor::StartWarm(
    const LaunchRequest& request, const std::vector<std::string>& arguments, const UniqueFd& lock) {
  std::optional<WarmTrainer> warm = warm_ ? warm_->Take() : std::nullopt;
  if (!warm) return std::nullopt;
  const absl::Status told =
      HandOver(warm->line, arguments, AttemptEnvironment(request), lock, options_.hand_over);
  if (!told.ok()) {
    LogWarning("a warm trainer could not be used",
               {{"run", request.key.run}, {"why", told.ToString()}});
    warm_->Discard(*std::move(warm));
    return std::nullopt;
  }
  const absl::Status watched =
      Watch(request.key, {.directory = request.directory, .shepherd = std::move(warm->process)});
  if (watched.ok()) return warm->shepherd;
  // Its trainer dies with it.
  const absl::StatusOr<UniqueFd> process = OpenProcess(warm->shepherd);
  if (process.ok()) SignalProcess(*process, SIGKILL).IgnoreError();  // if it cannot be, it is gone
  return watched;
}

absl::StatusOr<ProcessIdentity> LocalExecutor::WatchChild(const LaunchRequest& request,
                                                          pid_t shepherd) {
  absl::StatusOr<ProcessIdentity> identity = ReadIdentity(shepherd);
  if (!identity.ok()) return identity;
  absl::StatusOr<UniqueFd> process = OpenProcess(*identity);
  if (!process.ok()) return process.status();
  absl::Status status =
      Watch(request.key, {.directory = request.directory, .shepherd = *std::move(process)});
  if (!status.ok()) return status;
  return identity;
}

absl::Status LocalExecutor::Adopt(const AttemptKey& key, const ProcessIdentity& shepherd,
                                  const std::filesystem::path& directory) {
  absl::StatusOr<UniqueFd> process = OpenProcess(shepherd);
  if (!process.ok() && !absl::IsNotFound(process.status())) return process.status();
  return Watch(key, {.directory = Canonical(directory),
                     .shepherd = process.ok() ? *std::move(process) : UniqueFd()});
}

std::optional<ProcessIdentity> LocalExecutor::FindShepherd(const std::filesystem::path& directory) {
  const auto until = std::chrono::steady_clock::now() + options_.introduction;
  const auto lives = [&] {
    return absl::IsFailedPrecondition(TakeLock(directory / "alive", 0).status());
  };
  while (!ReadShepherdFile(directory) && lives()) {
    if (std::chrono::steady_clock::now() >= until) {
      LogWarning("a shepherd does not say who it is", {{"directory", directory.string()}});
      while (KillStrays(Canonical(directory))) std::this_thread::sleep_for(kLookAgain);
    } else {
      std::this_thread::sleep_for(kLookForFile);
    }
  }
  return ReadShepherdFile(directory);
}

absl::Status LocalExecutor::Watch(const AttemptKey& key, Attempt attempt) {
  {
    MutexLock lock(mutex_);
    const auto [entry, is_new] = attempts_.try_emplace(key, std::move(attempt));
    if (!is_new) return AlreadyWatched(key);
    if (const UniqueFd& shepherd = entry->second.shepherd) {
      epoll_event event = {.events = EPOLLIN, .data = {}};
      epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, shepherd.get(), &event);
    }
  }
  eventfd_write(wake_.get(), 1);
  return absl::OkStatus();
}

void LocalExecutor::Terminate(const AttemptKey& key, std::chrono::milliseconds grace) {
  MutexLock lock(mutex_);
  const auto found = attempts_.find(key);
  if (found == attempts_.end() || !found->second.shepherd) return;
  // A real-time signal: these are queued, so that a shorter grace sent right after is not lost.
  const int value = static_cast<int>(std::clamp<int64_t>(grace.count(), 0, INT32_MAX));
  const absl::Status status = SignalProcess(found->second.shepherd, SIGRTMIN, value);
  if (!status.ok())
    LogInfo("attempt cannot be asked to end", {{"run", key.run}, {"why", status.ToString()}});
}

void LocalExecutor::WatchLoop() {
  for (bool again = false; !Stopping();) {
    epoll_event events[16];
    const int timeout = again ? static_cast<int>(kLookAgain.count()) : -1;
    epoll_wait(epoll_.get(), events, std::size(events), timeout);
    eventfd_t ignored;
    eventfd_read(wake_.get(), &ignored);
    again = ReportEnded();
  }
}

bool LocalExecutor::IsWatched(const AttemptKey& key) {
  MutexLock lock(mutex_);
  return attempts_.contains(key);
}

bool LocalExecutor::Stopping() {
  MutexLock lock(mutex_);
  return stopping_;
}

std::vector<std::pair<AttemptKey, std::filesystem::path>> LocalExecutor::TakeEnded() {
  std::vector<std::pair<AttemptKey, std::filesystem::path>> ended;
  MutexLock lock(mutex_);
  for (auto& [key, attempt] : attempts_) {
    if (attempt.shepherd && !HasEnded(attempt.shepherd)) continue;
    if (attempt.shepherd) ReapChild(attempt.shepherd, Reap::kIfEnded);
    attempt.shepherd = UniqueFd();  // and so out of epoll
    ended.emplace_back(key, attempt.directory);
  }
  return ended;
}

bool LocalExecutor::ReportEnded() {
  bool again = false;
  for (const auto& [key, directory] : TakeEnded()) {
    const ExitReport report = ReadExitReport(directory);
    if (report.lost && KillStrays(directory)) {
      again = true;  // reported once they are gone
      continue;
    }
    {
      MutexLock lock(mutex_);
      attempts_.erase(key);
    }
    on_exit_(key, report);
  }
  return again;
}

}  // namespace normlab::executor
