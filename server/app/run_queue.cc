#include "server/app/run_queue.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "google/protobuf/util/time_util.h"
#include "server/app/run_stops.h"
#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/domain/priority.h"

namespace normlab::app {
namespace {

using scheduler::Device;
using scheduler::Snapshot;
using scheduler::Waiting;
using storage::QueuedRow;

constexpr double kMicros = 1e6;
// Of what was used longer ago less than a thousandth counts.
constexpr int64_t kRemembered = int64_t{10} * 24 * 3600 * 1'000'000;  // microseconds
constexpr std::chrono::milliseconds kOldest(1000);  // an answer, though nothing has changed
constexpr int kCostShare = 20;  // an answer is kept this many times as long as it took to make
constexpr double kUnknownSpeed = 0;

bool IsGpu(const std::string& device) { return device.starts_with("gpu"); }

bool HasUsableGpu(const std::vector<Device>& devices) {
  return std::ranges::any_of(devices, [](const Device& device) {
    return device.kind == scheduler::DeviceKind::kGpu && device.unavailable_reason.empty();
  });
}

double WidthOf(const storage::UsedRow& row) {
  return static_cast<double>(scheduler::SplitDevices(row.device).size());
}

v1::QueueEntry EntryOf(const RunQueue::Expected& expected, const Waiting& waiting) {
  const QueuedRow& row = expected.rows.at(waiting.run);
  v1::QueueEntry entry;
  entry.set_run(row.id);
  entry.set_display_name(row.display_name);
  entry.set_user(row.user);
  entry.set_priority(std::string(domain::PriorityName(row.priority)));
  entry.set_position(waiting.position);
  entry.set_wait_reason(StrCat(WhyItWasStopped(row.stop_cause, row.makes_room_for),
                               scheduler::ReasonWithTime(waiting)));
  if (waiting.start_seconds) {
    *entry.mutable_estimated_start_time() =
        google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(
            expected.wall_micros + static_cast<int64_t>(*waiting.start_seconds * kMicros));
  }
  entry.set_device(row.device);
  v1::Resources& resources = *entry.mutable_resources();
  resources.set_gpus(static_cast<int32_t>(row.gpus));
  resources.set_gpu_memory_bytes(row.gpu_memory_bytes);
  resources.set_exclusive(row.exclusive);
  entry.set_held(row.held);
  entry.set_threads(row.threads);
  return entry;
}

void AddUsers(const Snapshot& snapshot, v1::Queue& queue) {
  std::map<std::string, v1::UserUsage> users;
  std::set<std::string> counted;
  for (const Device& device : snapshot.devices) {
    for (const scheduler::Lease& lease : device.leases) {
      v1::UserUsage& usage = users[lease.user];
      if (counted.insert(lease.run).second) usage.set_running(usage.running() + 1);
      usage.set_gpu_memory_bytes(usage.gpu_memory_bytes() + lease.memory_bytes);
    }
  }
  for (const scheduler::QueuedRun& run : snapshot.queue) {
    users[run.user].set_queued(users[run.user].queued() + 1);
  }
  for (const auto& [name, state] : snapshot.users) {
    if (state.device_seconds > 0) {
      users[name].set_decayed_device_seconds(state.device_seconds);
    }
  }
  for (auto& [name, usage] : users) {
    usage.set_user(name);
    *queue.add_users() = std::move(usage);
  }
}

}  // namespace

double RunQueue::Seconds() const {
  return std::chrono::duration<double>(clock_.Now().time_since_epoch()).count();
}

absl::Status RunQueue::Load() {
  const int64_t wall = clock_.WallMicros();
  std::vector<storage::UsedRow> ended, living;
  const absl::Status status = store_.Read([&](storage::Database& database) -> absl::Status {
    auto read_ended = storage::ReadEnded(database, wall - kRemembered);
    if (!read_ended.ok()) return read_ended.status();
    auto read_living = storage::ReadLiving(database);
    if (!read_living.ok()) return read_living.status();
    ended = *std::move(read_ended);
    living = *std::move(read_living);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  // A clock that was set back makes no use negative.
  const auto since = [wall](int64_t time) {
    return static_cast<double>(std::max<int64_t>(0, wall - time)) / kMicros;
  };
  const double now = Seconds();
  MutexLock lock(mutex_);
  for (const storage::UsedRow& row : ended) {
    const double seconds =
        static_cast<double>(std::max<int64_t>(0, *row.end_time - row.start_time)) / kMicros;
    ledger_.AddPast(row.user, WidthOf(row), seconds, since(*row.end_time), now);
  }
  for (const storage::UsedRow& row : living) {
    ledger_.Take(row.run, row.user, WidthOf(row), now - since(row.start_time));
    holding_since_[row.run] = now - since(row.start_time);
  }
  NoteSpeeds(ended);
  if (followed_until_ == 0) followed_until_ = wall;  // nothing has ended yet
  return absl::OkStatus();
}

// Takes in how fast the attempts were that ended since the last time.
void RunQueue::NoteSpeeds(const std::vector<storage::UsedRow>& ended) {
  for (const storage::UsedRow& row : ended) {
    if (*row.end_time < followed_until_) continue;
    if (*row.end_time > followed_until_) followed_at_it_.clear();
    followed_until_ = *row.end_time;
    if (!followed_at_it_.insert(row.attempt).second) continue;
    const bool gpu = IsGpu(row.device);
    step_times_.Note({.gpu = gpu,
                      .threads = gpu ? 1 : static_cast<int64_t>(WidthOf(row)),
                      .flops_per_step = row.flops_per_step},
                     static_cast<double>(row.steps), row.run_seconds);
  }
}

// Who holds devices is on the board; the ledger follows it.
void RunQueue::FollowLeases(const std::vector<Device>& devices) {
  const double now = Seconds();
  std::map<std::string, std::pair<std::string, double>> holders;  // user and width, by run
  for (const Device& device : devices) {
    for (const scheduler::Lease& lease : device.leases) {
      auto& [user, width] = holders[lease.run];
      user = lease.user;
      width += 1;
    }
  }
  std::erase_if(holding_since_, [&](const auto& entry) {
    if (holders.contains(entry.first)) return false;
    ledger_.Return(entry.first, now);
    return true;
  });
  for (const auto& [run, holder] : holders) {
    if (!holding_since_.try_emplace(run, now).second) continue;
    ledger_.Take(run, holder.first, holder.second, now);
  }
}

void RunQueue::FollowLeases() {
  const std::vector<Device> devices = devices_.Devices();
  MutexLock lock(mutex_);
  FollowLeases(devices);
}

void RunQueue::AddHoldings(const std::vector<storage::ActiveRow>& active, Snapshot& snapshot) {
  std::map<std::string, bool> on_gpu;
  const double now = Seconds();
  for (const Device& device : snapshot.devices) {
    for (const scheduler::Lease& lease : device.leases) {
      on_gpu[lease.run] = IsGpu(device.id);
      const auto since = holding_since_.find(lease.run);
      snapshot.holdings[lease.run].held_seconds =
          since == holding_since_.end() ? 0 : now - since->second;
    }
  }
  for (const storage::ActiveRow& row : active) {
    const auto found = snapshot.holdings.find(row.id);
    if (found == snapshot.holdings.end()) continue;
    scheduler::Holding& holding = found->second;
    holding.stopping = row.stopping;
    const auto steps_left = static_cast<double>(std::max<int64_t>(0, row.steps_left));
    const double speed = progress_ == nullptr ? kUnknownSpeed : progress_->StepsPerSecond(row.id);
    if (speed > 0) {
      holding.remaining_seconds = steps_left / speed;
      continue;
    }
    const bool gpu = on_gpu[row.id];
    const std::optional<double> step = step_times_.SecondsPerStep(
        {.gpu = gpu, .threads = gpu ? 1 : row.threads, .flops_per_step = row.flops_per_step});
    if (step) holding.remaining_seconds = steps_left * *step;
  }
}

scheduler::QueuedRun RunQueue::QueuedOf(const QueuedRow& row, bool gpus, int64_t now) const {
  scheduler::QueuedRun run = {.id = row.id,
                              .name = row.display_name,
                              .user = row.user,
                              .priority = static_cast<int>(row.priority),
                              .rank = row.rank,
                              .device = row.device,
                              .threads = row.threads,
                              .gpus = std::max<int64_t>(1, row.gpus),
                              .gpu_memory_bytes = row.gpu_memory_bytes,
                              .exclusive = row.exclusive,
                              .preemptible = row.preemptible,
                              .held = row.held,
                              .unmet = row.unmet};
  // A checkpoint is gone on from on the kind of device that wrote it: numbers differ between them.
  if (!row.begun_on.empty()) run.device = IsGpu(row.begun_on) ? "gpu" : "cpu";
  if (run.gpu_memory_bytes == 0) run.gpu_memory_bytes = row.gpu_need_bytes;
  if (row.not_before && *row.not_before > now) {
    run.not_before = static_cast<double>(*row.not_before - now) / kMicros;
  }
  const bool gpu = IsGpu(run.device) || (gpus && run.device == "auto");
  const std::optional<double> step = step_times_.SecondsPerStep(
      {.gpu = gpu, .threads = gpu ? 1 : row.threads, .flops_per_step = row.flops_per_step});
  if (step) {
    run.expected_seconds = *step * static_cast<double>(std::max<int64_t>(0, row.steps_left));
  }
  return run;
}

absl::StatusOr<Snapshot> RunQueue::TakeSnapshot(bool all, std::map<std::string, QueuedRow>* rows) {
  Snapshot snapshot;
  snapshot.devices = devices_.Devices();
  const bool gpus = HasUsableGpu(snapshot.devices);
  std::vector<QueuedRow> queue;
  std::vector<storage::ActiveRow> active;
  std::vector<storage::UserRow> users;
  std::vector<storage::UsedRow> ended;
  const int64_t now = clock_.WallMicros();
  // Who starts now is not a matter of the wall clock, which may jump: the dispatcher leaves out
  // whom it holds back.
  const int64_t not_before = all ? now : std::numeric_limits<int64_t>::max();
  int64_t ended_since = 0;
  {
    MutexLock lock(mutex_);
    ended_since = followed_until_;
  }
  const absl::Status status = store_.Read([&](storage::Database& database) -> absl::Status {
    auto read_ended = storage::ReadEnded(database, ended_since);
    if (!read_ended.ok()) return read_ended.status();
    auto read_queue = storage::ReadQueue(database, all, not_before);
    if (!read_queue.ok()) return read_queue.status();
    auto read_active = storage::ReadActive(database);
    if (!read_active.ok()) return read_active.status();
    auto read_users = storage::ReadUserLimits(database);
    if (!read_users.ok()) return read_users.status();
    ended = *std::move(read_ended);
    queue = *std::move(read_queue);
    active = *std::move(read_active);
    users = *std::move(read_users);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  MutexLock lock(mutex_);
  NoteSpeeds(ended);
  AddHoldings(active, snapshot);
  for (const storage::UserRow& user : users) {
    snapshot.users[user.name] = {.max_running = user.max_running,
                                 .max_gpu_memory_bytes = user.max_gpu_memory_bytes};
  }
  for (const auto& [user, used] : ledger_.At(Seconds())) {
    snapshot.users[user].device_seconds = used;
  }
  snapshot.queue.reserve(queue.size());
  for (QueuedRow& row : queue) {
    snapshot.queue.push_back(QueuedOf(row, gpus, not_before));
    if (rows == nullptr) continue;
    std::string id = row.id;
    rows->emplace(std::move(id), std::move(row));
  }
  return snapshot;
}

absl::StatusOr<scheduler::Plan> RunQueue::MakePlan(
    const std::function<bool(const std::string&)>& leave_out) {
  const std::vector<Device> devices = devices_.Devices();
  {
    MutexLock lock(mutex_);
    FollowLeases(devices);
  }
  if (!scheduler::MayStartAny(devices)) return scheduler::Plan();
  absl::StatusOr<Snapshot> snapshot = TakeSnapshot(/*all=*/false, nullptr);
  if (!snapshot.ok()) return snapshot.status();
  std::erase_if(snapshot->queue,
                [&](const scheduler::QueuedRun& run) { return leave_out(run.id); });
  return scheduler::MakePlan(*snapshot);
}

absl::StatusOr<RunQueue::ExpectedPtr> RunQueue::Expect(bool latest) {
  MutexLock making(expecting_);
  const uint64_t changes = changes_;
  using std::chrono::steady_clock;
  // By the real clock, as what it saves is real time.
  const steady_clock::time_point begin = steady_clock::now();
  const auto age = begin - expected_at_;
  const bool fresh =
      changes == expected_changes_ ? age < kOldest : age < kCostShare * expected_cost_;
  if (expected_ != nullptr && fresh && !latest) return expected_;
  auto made = std::make_shared<Expected>();
  made->wall_micros = clock_.WallMicros();
  absl::StatusOr<Snapshot> snapshot = TakeSnapshot(/*all=*/true, &made->rows);
  if (!snapshot.ok()) return snapshot.status();
  made->snapshot = *std::move(snapshot);
  made->waiting = scheduler::MakeForecast(made->snapshot);
  for (size_t i = 0; i < made->waiting.size(); ++i) made->place[made->waiting[i].run] = i;
  expected_ = std::move(made);
  expected_changes_ = changes;
  expected_at_ = steady_clock::now();
  expected_cost_ = expected_at_ - begin;
  return expected_;
}

absl::StatusOr<std::vector<Waiting>> RunQueue::First(size_t starts) {
  const absl::StatusOr<Snapshot> snapshot = TakeSnapshot(/*all=*/true, nullptr);
  if (!snapshot.ok()) return snapshot.status();
  return scheduler::MakeForecast(*snapshot, starts);
}

void RunQueue::Complete(v1::Run& run) {
  if (run.state() != v1::Run::STATE_QUEUED) return;
  const absl::StatusOr<ExpectedPtr> expected = Expect();
  if (!expected.ok()) {
    LogWarning("no forecast of the queue", {{"error", std::string(expected.status().message())}});
    return;
  }
  const auto found = (*expected)->place.find(run.id());
  if (found == (*expected)->place.end()) return;  // queued since
  const Waiting& waiting = (*expected)->waiting[found->second];
  const v1::QueueEntry entry = EntryOf(**expected, waiting);
  run.set_queue_position(entry.position());
  if (entry.has_estimated_start_time()) {
    *run.mutable_estimated_start_time() = entry.estimated_start_time();
  }
  // Why it is tried again, or what keeps it from starting now, was written by who knows.
  const bool noted =
      waiting.cause == Waiting::Cause::kTime || waiting.cause == Waiting::Cause::kNext;
  if (noted && !run.wait_reason().empty()) return;
  run.set_wait_reason(entry.wait_reason());
}

absl::StatusOr<v1::Queue> RunQueue::Describe(size_t entries) {
  const absl::StatusOr<ExpectedPtr> expected = Expect();
  if (!expected.ok()) return expected.status();
  v1::Queue queue;
  for (const Waiting& waiting : (*expected)->waiting) {
    if (static_cast<size_t>(queue.entries_size()) == entries) break;
    *queue.add_entries() = EntryOf(**expected, waiting);
  }
  queue.set_total_size(static_cast<int64_t>((*expected)->waiting.size()));
  AddUsers((*expected)->snapshot, queue);
  return queue;
}

}  // namespace normlab::app
