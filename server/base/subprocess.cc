#include "server/base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/base/files.h"

namespace normlab {
namespace {

// By number: <sys/pidfd.h> of glibc 2.36 forgets to say extern "C".
int PidfdOpen(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

int PidfdSendSignal(int process, int signal, siginfo_t* info) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, process, signal, info, 0));
}

// posix_spawn's two argument objects, freed whatever happens.
class SpawnArguments {
 public:
  SpawnArguments() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnArguments() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

int Redirect(posix_spawn_file_actions_t* actions, int from, int to) {
  return from < 0 ? posix_spawn_file_actions_addopen(actions, to, "/dev/null", O_RDWR, 0)
                  : posix_spawn_file_actions_adddup2(actions, from, to);
}

int Prepare(const SpawnOptions& options, SpawnArguments* arguments) {
  posix_spawn_file_actions_t* const actions = &arguments->actions;
  int error = Redirect(actions, -1, 0);
  if (error == 0) error = Redirect(actions, options.stdout_fd, 1);
  if (error == 0) error = Redirect(actions, options.stderr_fd, 2);
  if (error == 0 && !options.directory.empty()) {
    error = posix_spawn_file_actions_addchdir_np(actions, options.directory.c_str());
  }
  const bool inherits = options.inherited_fd >= 0;
  if (error == 0 && inherits) error = Redirect(actions, options.inherited_fd, 3);
  if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(actions, inherits ? 4 : 3);
  if (error != 0) return error;
  sigset_t every;
  sigset_t mask;
  sigfillset(&every);
  options.block_signals ? sigfillset(&mask) : sigemptyset(&mask);
  posix_spawnattr_setsigdefault(&arguments->attributes, &every);
  posix_spawnattr_setsigmask(&arguments->attributes, &mask);
  return posix_spawnattr_setflags(&arguments->attributes,
                                  POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Empty when it cannot be read: also of a process that ends between opening and reading, at which a
// stream's iterators would throw.
std::string ReadProc(const std::filesystem::path& path) { return ReadFile(path).value_or(""); }

// Field 22 of /proc/PID/stat. The second field, the program's name in parentheses, may hold spaces
// and parentheses itself, so counting begins after the last one.
std::optional<uint64_t> StartTicks(pid_t pid) {
  const std::string stat = ReadProc(absl::StrCat("/proc/", pid, "/stat"));
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields =
      absl::StrSplit(stat.substr(name_end + 1), ' ', absl::SkipEmpty());
  uint64_t ticks;
  if (fields.size() < 20 || !absl::SimpleAtoi(fields[19], &ticks)) return std::nullopt;
  return ticks;
}

}  // namespace

void UniqueFd::Reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

absl::StatusOr<pid_t> Spawn(const SpawnOptions& options) {
  if (options.argv.empty()) return absl::InvalidArgumentError("no program to start");
  SpawnArguments arguments;
  int error = Prepare(options, &arguments);
  pid_t pid = 0;
  if (error == 0) {
    error = posix_spawn(&pid, options.argv[0].c_str(), &arguments.actions, &arguments.attributes,
                        Pointers(options.argv).data(), Pointers(options.environment).data());
  }
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", options.argv[0]));
  return pid;
}

const std::string& BootId() {
  static const std::string* const id = [] {
    std::string text = ReadProc("/proc/sys/kernel/random/boot_id");
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return new std::string(text);
  }();
  return *id;
}

double BootSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

absl::StatusOr<ProcessIdentity> ReadIdentity(pid_t pid) {
  const std::optional<uint64_t> ticks = StartTicks(pid);
  if (!ticks) return absl::NotFoundError(absl::StrCat("there is no process ", pid));
  return ProcessIdentity{.pid = pid, .start_ticks = *ticks, .boot_id = BootId()};
}

absl::StatusOr<UniqueFd> OpenProcess(const ProcessIdentity& identity) {
  if (identity.pid <= 0) return absl::InvalidArgumentError("not a process id");
  UniqueFd process(PidfdOpen(identity.pid));
  if (!process && errno != ESRCH) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open process ", identity.pid));
  }
  // In this order: what the pidfd holds can no longer give its number to another process.
  if (!process || ReadIdentity(identity.pid).value_or(ProcessIdentity{}) != identity) {
    return absl::NotFoundError(absl::StrCat("process ", identity.pid, " is gone"));
  }
  return process;
}

bool HasEnded(const UniqueFd& process) {
  pollfd entry = {.fd = process.get(), .events = POLLIN, .revents = 0};
  return poll(&entry, 1, 0) == 1;
}

void ReapChild(const UniqueFd& process, Reap reap) {
  constexpr auto kPidfd = static_cast<idtype_t>(3);  // P_PIDFD, which glibc 2.35 does not declare
  siginfo_t info = {};
  waitid(kPidfd, static_cast<id_t>(process.get()), &info,
         reap == Reap::kWait ? WEXITED : WEXITED | WNOHANG);
}

absl::Status SignalProcess(const UniqueFd& process, int signal, int value) {
  siginfo_t info = {};
  info.si_signo = signal;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_int = value;
  if (PidfdSendSignal(process.get(), signal, value < 0 ? nullptr : &info) == 0) {
    return absl::OkStatus();
  }
  if (errno == ESRCH) return absl::NotFoundError("the process is gone");
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot send signal ", signal));
}

std::optional<std::string> EnvironmentOf(pid_t pid, std::string_view name) {
  const std::string environment = ReadProc(absl::StrCat("/proc/", pid, "/environ"));
  for (const absl::string_view variable : absl::StrSplit(environment, '\0')) {
    if (variable.size() > name.size() && variable[name.size()] == '=' &&
        variable.substr(0, name.size()) == absl::string_view(name.data(), name.size())) {
      return std::string(variable.substr(name.size() + 1));
    }
  }
  return std::nullopt;
}

std::vector<ProcessIdentity> FindByEnvironment(const std::string& marker) {
  std::vector<ProcessIdentity> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    pid_t pid;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    // Read in this order, an identity is never that of a later process with the same number.
    const absl::StatusOr<ProcessIdentity> identity = ReadIdentity(pid);
    const std::string environment = ReadProc(entry.path() / "environ");
    for (const absl::string_view variable : absl::StrSplit(environment, '\0')) {
      if (identity.ok() && variable == marker) found.push_back(*identity);
    }
  }
  return found;
}

}  // namespace normlab
