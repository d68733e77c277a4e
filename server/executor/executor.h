// Starts, finds again and ends the processes of attempts.
//
//   LocalExecutor executor(options, [](const AttemptKey& key, const ExitReport& report) { ... });
//   absl::StatusOr<ProcessIdentity> shepherd = executor.Launch(request);
//
// Each attempt is a normlab-shepherd, parent of one normlab-trainer. The shepherd outlives the
// server, so that a restarted server can Adopt it or read its exit.json.
#ifndef NORMLAB_SERVER_EXECUTOR_EXECUTOR_H_
#define NORMLAB_SERVER_EXECUTOR_EXECUTOR_H_

#include <chrono>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/subprocess.h"

namespace normlab::executor {

using normlab::ProcessIdentity;

struct AttemptKey {
  std::string run;  // ULID
  int32_t attempt = 0;
  auto operator<=>(const AttemptKey&) const = default;
};

struct LaunchRequest {
  AttemptKey key;
  std::string token;     // secret of the attempt; goes into a 0600 file, never argv
  std::string device;    // "cpu:0"
  std::string gpu_uuid;  // empty for a CPU run
  int32_t threads = 1;
  std::filesystem::path directory;      // folder of the attempt; made (0700) by Launch
  std::filesystem::path endpoint_file;  // where the trainer finds the server, also after a restart
};

// How an attempt's processes ended, all of them.
struct ExitReport {
  std::optional<int> exit_code;    // of the trainer, when it ended by itself
  std::optional<int> exit_signal;  // that ended the trainer
  int64_t max_rss_bytes = 0;
  double cpu_seconds = 0;
  std::optional<double> elapsed_seconds;  // from the start of the shepherd to the end of the last
  // The shepherd itself is gone without a report (killed, or the machine went down): nothing is
  // known about the trainer's end. `detail` says what was found.
  bool lost = false;
  std::string detail;
};

// Any thread may call; exits are reported from the executor's own thread, once an attempt, after
// the whole process group is gone.
class Executor {
 public:
  using ExitCallback = std::function<void(const AttemptKey&, const ExitReport&)>;
  virtual ~Executor() = default;

  // Starts the processes of an attempt. RESOURCE_EXHAUSTED when the spool cannot be allocated.
  virtual absl::StatusOr<ProcessIdentity> Launch(const LaunchRequest& request) = 0;

  // Takes over an attempt that an earlier server started. If its shepherd is no longer alive, its
  // exit is reported (from exit.json, or as lost) like that of any other.
  virtual absl::Status Adopt(const AttemptKey& key, const ProcessIdentity& shepherd,
                             const std::filesystem::path& directory) = 0;

  // The shepherd of an attempt of which no server could note who it is: one of them died while it
  // was starting it. Waits for one that lives to say so itself; one that does not is killed with
  // all it started. Absent when nothing was ever launched, or nothing is left of it.
  virtual std::optional<ProcessIdentity> FindShepherd(const std::filesystem::path& directory) = 0;

  // Asks the attempt's processes to end: SIGTERM now, SIGKILL after `grace`.
  virtual void Terminate(const AttemptKey& key, std::chrono::milliseconds grace) = 0;
};

}  // namespace normlab::executor

#endif  // NORMLAB_SERVER_EXECUTOR_EXECUTOR_H_
