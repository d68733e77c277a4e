// Starting processes, and knowing later whether a number still means the same one.
//
//   absl::StatusOr<pid_t> pid = Spawn({.argv = {"/bin/true"}});
//   absl::StatusOr<ProcessIdentity> identity = ReadIdentity(*pid);
//   ... perhaps in another process, after a restart ...
//   absl::StatusOr<UniqueFd> process = OpenProcess(*identity);  // NOT_FOUND: that one is gone
//   SignalProcess(*process, SIGTERM);                           // never hits anybody else
//
// posix_spawn, never fork: a copy of a process with gRPC's threads deadlocks before its exec.
// All functions are thread-safe.
#ifndef NORMLAB_SERVER_BASE_SUBPROCESS_H_
#define NORMLAB_SERVER_BASE_SUBPROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace normlab {

// Owns a file descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  ~UniqueFd() { Reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    Reset();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  void Reset();
  int fd_ = -1;
};

// Which process a number stood for: a pid alone may be somebody else's after its process ended.
struct ProcessIdentity {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat
  std::string boot_id;       // /proc/sys/kernel/random/boot_id
  bool operator==(const ProcessIdentity&) const = default;
};

struct SpawnOptions {
  std::vector<std::string> argv = {};         // argv[0] is the path of the program
  std::vector<std::string> environment = {};  // "NAME=value", the whole of it
  std::string directory = {};                 // to start in; empty: the caller's
  int stdout_fd = -1;                         // -1: /dev/null; stdin always is
  int stderr_fd = -1;
  int inherited_fd = -1;  // becomes its descriptor 3, unless -1
  // Starts it with every signal blocked, for a program that unblocks what it handles: no signal
  // can kill it before it is ready.
  bool block_signals = false;
};

// Starts a program with default signal handlers and no descriptor above 2 but the one it inherits.
absl::StatusOr<pid_t> Spawn(const SpawnOptions& options);

// This machine's boot, from the kernel.
const std::string& BootId();

// Seconds since then, by a clock that nobody sets and that goes on while the machine sleeps: the
// one by which start_ticks are counted.
double BootSeconds();

// NOT_FOUND when there is no such process.
absl::StatusOr<ProcessIdentity> ReadIdentity(pid_t pid);

// A pidfd of just that process. NOT_FOUND when it is gone; another process may have its number. A
// process that ended but was not waited for yet still counts: poll tells.
absl::StatusOr<UniqueFd> OpenProcess(const ProcessIdentity& identity);

// True once the process has ended.
bool HasEnded(const UniqueFd& process);

enum class Reap { kIfEnded, kWait };
// Takes the end of a child of this process, which is a zombie until then. Does nothing for the
// child of another.
void ReapChild(const UniqueFd& process, Reap reap);

// Sends a signal; `value`, when not negative, goes with it (siginfo's si_int, si_code SI_QUEUE).
// NOT_FOUND when the process is gone.
absl::Status SignalProcess(const UniqueFd& process, int signal, int value = -1);

// What a variable of a process's environment was when it began its present program; nothing when it
// has none, is gone, or is somebody else's whom this process may not look at.
std::optional<std::string> EnvironmentOf(pid_t pid, std::string_view name);

// Processes of this user whose environment holds the entry `marker` ("NAME=value").
std::vector<ProcessIdentity> FindByEnvironment(const std::string& marker);

}  // namespace normlab

#endif  // NORMLAB_SERVER_BASE_SUBPROCESS_H_
