#include "server/trainer/link/attempt.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>

#include "absl/strings/numbers.h"
#include "server/base/files.h"
#include "server/base/log.h"
#include "server/base/spool.h"
#include "server/base/strings.h"
#include "server/trainer/link/fault_text.h"
#include "server/trainer/link/session.h"
#include "server/trainer/link/settings.h"
#include "server/trainer/link/signals.h"
#include "server/trainer/link/spool_observer.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {
namespace {

using worker::v1::Finished;

constexpr std::chrono::seconds kLastWait(5);
constexpr size_t kLongestReason = 2000;  // so that the last record fits in the spool's reserve

Finished MakeFinished(Finished::Outcome outcome, int64_t last_step, std::string reason) {
  Finished finished;
  finished.set_outcome(outcome);
  finished.set_last_step(last_step);
  if (reason.size() > kLongestReason) reason.resize(kLongestReason);
  // A reason quotes what failed, and protobuf takes UTF-8 only.
  std::replace_if(
      reason.begin(), reason.end(), [](char c) { return (c & 0x80) != 0; }, '?');
  finished.set_reason(reason);
  return finished;
}

// It ended before its time, because of what the session says.
Finished Stopped(int64_t last_step, Session& session) {
  const bool orphaned = session.stop_cause() == StopCause::kServerLost;
  return MakeFinished(orphaned ? Finished::OUTCOME_ORPHANED : Finished::OUTCOME_STOPPED, last_step,
                      session.stop_reason());
}

Finished LimitReached(const worker::v1::Assignment& assignment) {
  const int64_t limit = assignment.step_limit();
  return MakeFinished(Finished::OUTCOME_LIMIT, limit,
                      StrCat("stopped behind step ", limit, ", its step_limit, of ",
                             assignment.effective_spec().steps()));
}

Finished FromResult(const Result& result, const worker::v1::Assignment& assignment,
                    const SpoolObserver& observer, Session& session) {
  switch (result.ending) {
    case Ending::kFinished:
      return MakeFinished(Finished::OUTCOME_SUCCEEDED, result.last_step, result.reason);
    case Ending::kDiverged:
      return MakeFinished(Finished::OUTCOME_DIVERGED, result.last_step, result.reason);
    case Ending::kPaused:
      if (result.last_step == assignment.step_limit()) return LimitReached(assignment);
      if (session.stop_cause() != StopCause::kServerLost) {
        return MakeFinished(Finished::OUTCOME_PAUSED, result.last_step, result.reason);
      }
      return MakeFinished(
          Finished::OUTCOME_ORPHANED, result.last_step,
          StrCat(session.stop_reason(), "; there is a checkpoint of step ", result.last_step));
    case Ending::kUnreadable:
      return MakeFinished(Finished::OUTCOME_UNREADABLE, result.last_step, result.reason);
    case Ending::kStopped:
      break;
  }
  // The last step may have been dropped for want of room.
  return Stopped(observer.last_step(), session);
}

// Whatever Train throws ends here: beyond is no one who could report it.
Finished TrainToTheEnd(const worker::v1::Assignment& assignment, SpoolObserver& observer,
                       Session& session) {
  const absl::StatusOr<TrainingSettings> settings = SettingsFromAssignment(assignment);
  if (!settings.ok()) {
    return MakeFinished(Finished::OUTCOME_FAILED, 0, std::string(settings.status().message()));
  }
  try {
    return FromResult(Train(*settings, observer), assignment, observer, session);
  } catch (const std::exception& error) {
    return MakeFinished(Finished::OUTCOME_FAILED, observer.last_step(),
                        FaultText(error.what(), assignment.gpu_memory_bytes()));
  } catch (...) {
    return MakeFinished(Finished::OUTCOME_FAILED, observer.last_step(), "unknown exception");
  }
}

// What is wanted of the engine after `step`: behind the limit, at least a checkpoint and the end.
Request RequestAfter(int64_t step, int64_t limit, Session& session) {
  const Request requested = session.requested();
  return limit > 0 && step >= limit ? std::max(requested, Request::kPause) : requested;
}

ExitCode CodeFor(const Finished& finished, StopCause cause) {
  if (finished.outcome() == Finished::OUTCOME_FAILED) return kExitFault;
  if (finished.outcome() == Finished::OUTCOME_ORPHANED) return kExitServerLost;
  if (finished.outcome() != Finished::OUTCOME_STOPPED) return kExitEnded;
  return cause == StopCause::kRefused ? kExitRefused : kExitEnded;
}

// Seconds, from the environment, which trainers have from their server.
void ReadReattachGrace(std::chrono::milliseconds& grace) {
  const char* text = std::getenv("NORMLAB_REATTACH_GRACE");
  double seconds = 0;
  if (text == nullptr) return;
  if (!absl::SimpleAtod(text, &seconds) || !(seconds > 0) || seconds > 1e9) {
    LogWarning("NORMLAB_REATTACH_GRACE is no number of seconds", {{"value", text}});
    return;
  }
  grace = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

SessionOptions MakeSessionOptions(const AttemptArguments& arguments, const std::string& token) {
  SessionOptions options;
  options.hello.set_run(arguments.run);
  options.hello.set_attempt(arguments.attempt);
  options.hello.set_token(token);
  options.hello.set_pid(getpid());
  options.hello.set_trainer_version(NORMLAB_VERSION);
  options.hello.set_engine_version(std::string(EngineVersion()));
  options.endpoint_file = arguments.endpoint_file;
  ReadReattachGrace(options.reattach_grace);
  return options;
}

void LogThreads(const AttemptArguments& arguments, const worker::v1::Assignment& assignment) {
  const int64_t threads = assignment.effective_spec().threads();
  if (threads == arguments.threads) return;
  LogWarning("spec and slot differ in threads",
             {{"spec", std::to_string(threads)}, {"slot", std::to_string(arguments.threads)}});
}

}  // namespace

absl::StatusOr<AttemptArguments> ParseArguments(int argc, const char* const* argv) {
  std::map<std::string, std::string> values = {{"--run", ""},    {"--attempt", ""},
                                               {"--dir", ""},    {"--endpoint-file", ""},
                                               {"--device", ""}, {"--threads", ""}};
  for (int i = 1; i < argc; i += 2) {
    const auto found = values.find(argv[i]);
    if (found == values.end()) return absl::InvalidArgumentError(StrCat("what is ", argv[i], "?"));
    if (i + 1 < argc) found->second = argv[i + 1];
  }
  for (const auto& [name, value] : values) {
    if (value.empty()) return absl::InvalidArgumentError(StrCat(name, " needs a value"));
  }
  AttemptArguments arguments;
  arguments.run = values["--run"];
  arguments.directory = values["--dir"];
  arguments.endpoint_file = values["--endpoint-file"];
  arguments.device = values["--device"];
  if (!absl::SimpleAtoi(values["--attempt"], &arguments.attempt) || arguments.attempt < 1 ||
      !absl::SimpleAtoi(values["--threads"], &arguments.threads) || arguments.threads < 1) {
    return absl::InvalidArgumentError("--attempt and --threads are whole numbers from 1");
  }
  return arguments;
}

ExitCode RunAttempt(const AttemptArguments& arguments) {
  const absl::StatusOr<std::string> token = ReadFile(arguments.directory / "token");
  absl::StatusOr<std::unique_ptr<Spool>> spool = Spool::Open(arguments.directory / "spool");
  for (const absl::Status& status : {token.status(), spool.status()}) {
    if (status.ok()) continue;
    LogError("cannot begin", {{"why", status.ToString()}});
    return kExitUsage;
  }
  BlockStopSignals();
  Session session(MakeSessionOptions(arguments, *token), spool->get());
  StopSignals signals([&session](int) { session.RequestStop(StopCause::kSignal, "SIGTERM"); });
  const absl::StatusOr<worker::v1::Assignment> assignment = session.WaitForAssignment();
  const int64_t step_limit = assignment.ok() ? assignment->step_limit() : 0;
  SpoolObserver observer(spool->get(), [&observer, &session, step_limit] {
    return RequestAfter(observer.last_step(), step_limit, session);
  });
  if (assignment.ok()) LogThreads(arguments, *assignment);
  const Finished finished =
      assignment.ok() ? TrainToTheEnd(*assignment, observer, session) : Stopped(0, session);
  observer.Finish(finished);
  const bool stored = session.Finish(kLastWait);
  LogInfo("ended", {{"outcome", Finished::Outcome_Name(finished.outcome())},
                    {"last_step", std::to_string(finished.last_step())},
                    {"reason", finished.reason()},
                    {"stored", stored ? "all" : "not all, the spool has the rest"}});
  return CodeFor(finished, session.stop_cause());
}

}  // namespace normlab::trainer
