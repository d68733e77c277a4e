// normlabd: see `normlabd --help` and docs/architecture.md.
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <variant>

#include "absl/synchronization/mutex.h"
#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/main/config.h"
#include "server/main/server.h"

namespace {

using std::chrono::steady_clock;

// Until every run has written its checkpoint and is in the queue again, for `seconds` at most.
// Another signal ends the wait.
void WaitForRuns(normlab::server::Server& server, double seconds, const sigset_t& signals) {
  constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 50'000'000};
  const auto until = steady_clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    const absl::StatusOr<size_t> left = server.StopRuns();
    if (left.ok() && *left == 0) return;
    const bool asked_again = sigtimedwait(&signals, nullptr, &kPause) > 0;
    if (!asked_again && steady_clock::now() < until) continue;
    normlab::LogWarning("runs are left to the next server",
                        {{"runs", left.ok() ? normlab::StrCat(*left) : left.status().ToString()}});
    return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::variant<normlab::server::Config, int> read = normlab::server::ReadConfig(argc, argv);
  if (const int* code = std::get_if<int>(&read)) return *code;
  normlab::server::Config& config = std::get<normlab::server::Config>(read);
  umask(077);
  // A distribution's Abseil is built with its search for deadlocks, which gRPC's locks then go
  // through on every message; ours are not its locks.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  normlab::StartLogging(config.log_level);
  // Blocked in every thread, and taken by the one that waits for them here.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  const bool checkpoints = config.on_stop == "checkpoint";
  const double stop_wait_seconds = config.stop_wait_seconds;
  normlab::server::Server server(std::move(config));
  if (const absl::Status status = server.Start(); !status.ok()) {
    std::fprintf(stderr, "normlabd: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  int caught = 0;
  sigwait(&signals, &caught);
  normlab::LogInfo("stopping", {{"signal", normlab::StrCat(caught)}});
  if (checkpoints) WaitForRuns(server, stop_wait_seconds, signals);
  server.Stop();
  normlab::LogInfo("stopped");
  return 0;
}
