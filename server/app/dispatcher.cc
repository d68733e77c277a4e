#include "server/app/dispatcher.h"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "google/protobuf/util/time_util.h"
#include "server/app/after_attempt.h"
#include "server/app/next_attempt.h"
#include "server/app/run_limits.h"
#include "server/app/run_stops.h"
#include "server/base/ids.h"
#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/domain/run_state.h"
#include "server/storage/dependencies.h"
#include "server/storage/lineage.h"
#include "server/storage/queue.h"
#include "server/storage/runs.h"

namespace normlab::app {
namespace {

using storage::AttemptRow;
using storage::RunControl;
using storage::WriteContext;

constexpr int kTokenBytes = 32;
constexpr std::chrono::milliseconds kRetry(500);  // of a write that failed

// What an attempt on these devices may see of the GPUs; empty for CPU slots.
std::string GpuUuids(const scheduler::DeviceBoard& board, const std::string& joined) {
  std::string uuids;
  const std::vector<std::string> ids = scheduler::SplitDevices(joined);
  for (const scheduler::Device& device : board.Devices()) {
    if (device.uuid.empty() || std::ranges::find(ids, device.id) == ids.end()) continue;
    StrAppend(&uuids, uuids.empty() ? "" : ",", device.uuid);
  }
  return uuids;
}

}  // namespace

Dispatcher::Dispatcher(storage::Store& store, Options options)
    : store_(store),
      options_(std::move(options)),
      queue_(store, *options_.devices, options_.progress, *options_.clock) {
  executor_ = options_.make_executor(
      [this](const executor::AttemptKey& key, const executor::ExitReport& report) {
        MutexLock lock(mutex_);
        exits_.push_back({.key = key, .report = report});
        ready_.NotifyAll();
      });
}

Dispatcher::~Dispatcher() { Stop(); }

absl::StatusOr<std::vector<v1::Run>> Dispatcher::ReadActive() {
  std::vector<v1::Run> active;
  const absl::Status status = store_.Read([&](storage::Database& database) {
    storage::RunQuery query;
    query.states = {v1::Run::STATE_STARTING, v1::Run::STATE_RUNNING, v1::Run::STATE_PAUSING,
                    v1::Run::STATE_CANCELLING};
    query.limit = 1'000'000;
    query.oldest_first = true;
    absl::StatusOr<std::vector<v1::Run>> runs = storage::ReadRuns(database, query);
    if (runs.ok()) active = *std::move(runs);
    return runs.status();
  });
  if (!status.ok()) return status;
  return active;
}

absl::Status Dispatcher::Start() {
  const absl::StatusOr<std::vector<v1::Run>> active = ReadActive();
  if (!active.ok()) return active.status();
  for (const v1::Run& run : *active) {
    if (absl::Status status = RecoverOne(run); !status.ok()) return status;
  }
  if (absl::Status status = queue_.Load(); !status.ok()) return status;
  thread_ = std::thread([this] { Loop(); });
  return absl::OkStatus();
}

void Dispatcher::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    ready_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
  executor_.reset();
}

void Dispatcher::Wake() {
  queue_.NoteChange();
  MutexLock lock(mutex_);
  work_ = true;
  ready_.NotifyAll();
}

// --- the loop ---

void Dispatcher::Loop() {
  DropLeftoverSpools();
  std::deque<Exit> exits;
  while (WaitForWork(exits)) {
    std::deque<Exit> later;
    for (Exit& exit : exits) {
      const absl::Status status = Finish(exit);
      if (status.ok()) continue;
      LogError("a run's end could not be stored",
               {{"run", exit.key.run}, {"error", std::string(status.message())}});
      if (WorthRetrying(status)) {
        later.push_back(std::move(exit));
      } else {
        options_.devices->Release(exit.key.run);
      }
    }
    exits = std::move(later);
    EndTroubled();
    EndOverdue();
    ReadHeldBack();
    StartQueued();
  }
}

// Takes what ended since; false when it is time to stop. With `exits` left from the last round it
// waits no longer than the time after which a failed write is worth another try, and the same for
// starts that failed and for runs that were interrupted.
bool Dispatcher::WaitForWork(std::deque<Exit>& exits) {
  MutexLock lock(mutex_);
  while (!stopping_ && !work_ && exits_.empty() && troubles_.empty()) {
    const std::optional<std::chrono::milliseconds> idle = IdleTime(!exits.empty());
    if (!idle) {
      ready_.Wait(mutex_);
    } else if (!ready_.WaitFor(mutex_, *idle)) {
      break;
    }
  }
  work_ = false;
  std::move(exits_.begin(), exits_.end(), std::back_inserter(exits));
  exits_.clear();
  return !stopping_;
}

std::optional<std::chrono::milliseconds> Dispatcher::IdleTime(bool has_exits) const {
  if (has_exits) return kRetry;
  std::optional<std::chrono::milliseconds> idle;
  const auto now = options_.clock->Now();
  const auto until = [&](std::chrono::steady_clock::time_point time) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - now);
    const auto wait = std::max(left, std::chrono::milliseconds(1));
    idle = idle ? std::min(*idle, wait) : wait;
  };
  if (start_again_) until(start_not_before_);
  if (note_again_) until(note_not_before_);
  for (const auto& [run, held] : held_back_) {
    if (held.until > now) until(held.until);
  }
  for (const auto& [attempt, timers] : timers_) {
    if (timers.time_out) until(*timers.time_out);
    if (timers.end) until(*timers.end);
  }
  return idle;
}

void Dispatcher::ReadHeldBack() {
  std::map<std::string, int64_t> runs;  // and the time before which they are not started
  const absl::Status status = store_.Read([&](storage::Database& database) {
    auto read = storage::ReadHeldBack(database);
    if (read.ok()) runs = *std::move(read);
    return read.status();
  });
  if (!status.ok()) {
    LogError("who is held back could not be read", {{"error", std::string(status.message())}});
    return TryStartingLater();
  }
  std::erase_if(held_back_, [&runs](const auto& held) { return !runs.contains(held.first); });
  for (const auto& [run, not_before] : runs) {
    HeldBack& held = held_back_[run];
    if (held.not_before == not_before) continue;
    const std::chrono::microseconds left(not_before - options_.clock->WallMicros());
    // The clock was set back while no server ran: nothing waits for so long.
    const bool over = left.count() <= 0 || left > kLongestPause;
    held = {.not_before = not_before,
            .until = options_.clock->Now() + (over ? std::chrono::microseconds(0) : left)};
  }
}

bool Dispatcher::IsHeldBack(const std::string& run) const {
  const auto held = held_back_.find(run);
  return held != held_back_.end() && held->second.until > options_.clock->Now();
}

bool Dispatcher::StartsNothing() {
  MutexLock lock(mutex_);
  return starts_nothing_;
}

// --- starting ---

void Dispatcher::StartOne(const scheduler::Placement& placement) {
  options_.devices->Take(placement.lease, placement.devices);
  queue_.FollowLeases();
  wait_reasons_.erase(placement.run);
  AttemptRow attempt;
  const std::string token = RandomHex(kTokenBytes);
  std::optional<double> seconds_left;
  const absl::Status status = CreateAttempt(placement, token, attempt, seconds_left);
  if (status.ok()) {
    if (seconds_left) WatchTime(attempt, *seconds_left);
    Launch(attempt, token, placement.threads);
    return;
  }
  // Cancelled meanwhile is normal.
  if (!absl::IsFailedPrecondition(status)) {
    LogError("a run could not be started",
             {{"run", placement.run}, {"error", std::string(status.message())}});
    TryStartingLater();
  }
  options_.devices->Release(placement.run);
}

absl::Status Dispatcher::CreateAttempt(const scheduler::Placement& placement,
                                       const std::string& token, AttemptRow& attempt,
                                       std::optional<double>& seconds_left) {
  return store_.writer().Write([&](WriteContext& context) -> absl::Status {
    AttemptRow row;
    row.run = placement.run;
    row.device = scheduler::JoinDevices(placement.devices);
    row.token_sha256 = Sha256Hex(token);
    row.gpu_memory_bytes = placement.lease.memory_bytes;
    row.exclusive = placement.lease.exclusive;
    const absl::StatusOr<v1::Run> read = storage::ReadRun(context.database, placement.run);
    if (!read.ok()) return read.status();
    // Held, or made to wait for another run, since it was chosen.
    if (auto may = storage::MayStart(context.database, *read); !may.ok()) return may;
    const absl::StatusOr<std::vector<AttemptRow>> earlier =
        storage::ReadAttempts(context.database, placement.run);
    if (!earlier.ok()) return earlier.status();
    const StartingPoint start = FindStartingPoint(*earlier, read->effective_spec().steps(),
                                                  options_.files->Checkpoints(placement.run));
    if (start.checkpoint) {
      row.resumed_from_attempt = start.checkpoint->attempt;
      row.resumed_from_step = start.checkpoint->step;
      row.resumed_from_file = start.checkpoint->file;
    }
    absl::StatusOr<AttemptRow> inserted = storage::InsertAttempt(context, std::move(row));
    if (!inserted.ok()) return inserted.status();
    attempt = *std::move(inserted);
    const absl::StatusOr<RunControl> control =
        storage::ReadRunControl(context.database, placement.run);
    if (!control.ok()) return control.status();
    seconds_left = SecondsLeft(read->effective_spec(), *earlier, control->limits_from);
    // Why it was stopped and waited is over.
    const RunControl now = {.tries = control->tries, .limits_from = control->limits_from};
    if (now != *control) {
      if (auto noted = storage::WriteRunControl(context, placement.run, now); !noted.ok()) {
        return noted;
      }
    }
    absl::Status status = storage::UpdateRun(context, placement.run, [&](v1::Run& run) {
      run.set_state(v1::Run::STATE_STARTING);
      run.clear_wait_reason();
      if (!run.has_start_time()) {
        *run.mutable_start_time() =
            google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(context.wall_micros);
      }
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
    v1::WatchRunsResponse started;
    started.mutable_attempt()->set_run(placement.run);
    *started.mutable_attempt()->mutable_attempt() = storage::AttemptMessage(attempt);
    context.Publish(placement.run, std::move(started));
    return absl::OkStatus();
  });
}

void Dispatcher::Launch(const AttemptRow& created, const std::string& token, int64_t threads) {
  AttemptRow attempt = created;
  executor::LaunchRequest request;
  request.key = {attempt.run, attempt.number};
  request.token = token;
  request.device = attempt.device;
  request.gpu_uuid = GpuUuids(*options_.devices, attempt.device);
  request.threads = static_cast<int32_t>(threads);
  request.directory = DirectoryOf(attempt);
  request.endpoint_file = options_.data_dir / "endpoint.json";
  const absl::Status made = options_.files->MakeCheckpoints(attempt.run);
  const absl::StatusOr<executor::ProcessIdentity> shepherd =
      made.ok() ? executor_->Launch(request) : made;
  if (!shepherd.ok()) {
    FailStart(attempt, shepherd.status());
    return;
  }
  LogInfo("run started", {{"run", attempt.run},
                          {"attempt", StrCat(attempt.number)},
                          {"device", attempt.device},
                          {"shepherd", StrCat(shepherd->pid)}});
  attempt.shepherd_pid = shepherd->pid;
  attempt.shepherd_start_ticks = static_cast<int64_t>(shepherd->start_ticks);
  attempt.shepherd_boot_id = shepherd->boot_id;
  bool cancelled = false;
  const absl::Status status = store_.writer().Write([&](WriteContext& context) {
    absl::StatusOr<v1::Run> run = storage::ReadRun(context.database, attempt.run);
    cancelled = run.ok() && run->state() == v1::Run::STATE_CANCELLING;
    return storage::SetShepherd(context, attempt);
  });
  if (!status.ok()) {
    // The shepherd has noted itself in the attempt's folder: a later server still finds it.
    LogWarning("a shepherd could not be noted",
               {{"run", attempt.run}, {"error", std::string(status.message())}});
  }
  // Whoever cancelled between commit and launch found nothing to end.
  if (cancelled) executor_->Terminate(request.key, options_.cancel_grace);
}

void Dispatcher::FailStart(const AttemptRow& attempt, const absl::Status& error) {
  LogError("a trainer could not be started",
           {{"run", attempt.run}, {"error", std::string(error.message())}});
  Exit exit;
  exit.key = {attempt.run, attempt.number};
  if (absl::IsResourceExhausted(error)) {
    // Not the run's fault, and not for ever.
    exit.put_back = StrCat("waits: ", StdView(error.message()));
    TryStartingLater();
  } else {
    exit.never_started = true;
    exit.report.detail = std::string(error.message());
  }
  MutexLock lock(mutex_);
  exits_.push_back(std::move(exit));
}

}  // namespace normlab::app
