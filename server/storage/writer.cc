#include "server/storage/writer.h"

#include <algorithm>
#include <future>
#include <iterator>
#include <utility>

#include "server/base/log.h"

namespace normlab::storage {
namespace {

// Bound how long one commit holds the writer, not how fast it is.
constexpr size_t kMaxGroup = 256;
constexpr int64_t kMaxRows = 4096;
constexpr std::chrono::seconds kFailureMemory(5);

}  // namespace

Writer::Writer(std::unique_ptr<Database> database, uint64_t sequence, Options options)
    : database_(std::move(database)), options_(std::move(options)), sequence_(sequence) {
  thread_ = std::thread([this] { Loop(); });
}

Writer::~Writer() { Stop(); }

void Writer::Submit(Work work, Done done, Load load) {
  {
    MutexLock lock(mutex_);
    if (!stopping_) {
      (holding_ && load.bulk ? held_ : queue_).push_back({std::move(work), std::move(done), load});
      ready_.NotifyOne();
      return;
    }
  }
  if (done) done(absl::CancelledError("the server is stopping"));
}

absl::Status Writer::Write(Work work) {
  auto promise = std::make_shared<std::promise<absl::Status>>();
  std::future<absl::Status> future = promise->get_future();
  Submit(std::move(work), [promise](const absl::Status& status) { promise->set_value(status); });
  return future.get();
}

void Writer::HoldBulk(bool held) {
  MutexLock lock(mutex_);
  if (holding_ == held) return;
  holding_ = held;
  if (held) {
    const auto bulk = std::stable_partition(queue_.begin(), queue_.end(),
                                            [](const Item& item) { return !item.load.bulk; });
    held_.insert(held_.end(), std::make_move_iterator(bulk), std::make_move_iterator(queue_.end()));
    queue_.erase(bulk, queue_.end());
  } else {
    queue_.insert(queue_.begin(), std::make_move_iterator(held_.begin()),
                  std::make_move_iterator(held_.end()));
    held_.clear();
    ready_.NotifyOne();
  }
}

void Writer::Stop() {
  std::deque<Item> dropped;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    dropped.swap(held_);
    ready_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
  std::deque<Chore> unfinished;
  {
    MutexLock lock(mutex_);
    unfinished.swap(chores_);
  }
  for (Chore& chore : unfinished) chore(nullptr);
  for (Item& item : dropped) {
    if (item.done) item.done(absl::CancelledError("the server is stopping"));
  }
}

absl::Status Writer::health() const {
  MutexLock lock(mutex_);
  const bool over = latest_.ok() && options_.clock->Now() - failed_at_ >= kFailureMemory;
  return over ? absl::OkStatus() : failure_;
}

void Writer::NoteHealth(const absl::Status& status) {
  MutexLock lock(mutex_);
  if (latest_.code() != status.code()) {
    if (status.ok()) {
      LogInfo("writing works again");
    } else {
      LogError("writing failed", {{"error", std::string(status.message())}});
    }
  }
  latest_ = status;
  if (status.ok()) return;
  failure_ = status;
  failed_at_ = options_.clock->Now();
}

void Writer::Loop() {
  TakeCare();  // of what an earlier server left
  while (true) {
    bool stop = false;
    std::vector<Item> group = TakeAll(stop);
    if (stop) return;
    if (!group.empty()) CommitGroup(std::move(group));
    TakeCare();
    DoChore();
  }
}

void Writer::AddChore(Chore chore) {
  {
    MutexLock lock(mutex_);
    if (!stopping_) {
      chores_.push_back(std::move(chore));
      ready_.NotifyOne();
      return;
    }
  }
  chore(nullptr);
}

void Writer::DoChore() {
  Chore chore;
  {
    MutexLock lock(mutex_);
    if (chores_.empty()) return;
    chore = std::move(chores_.front());
    chores_.pop_front();
  }
  if (!chore(database_.get())) return;
  MutexLock lock(mutex_);
  chores_.push_back(std::move(chore));
}

bool Writer::IsTimeForCare() const {
  return care_wanted_ && std::chrono::steady_clock::now() >= last_tick_ + options_.tick;
}

void Writer::TakeCare() {
  if (!options_.care) return;
  const bool tick = IsTimeForCare();
  const LogCare::Verdict verdict = options_.care(*database_, tick);
  if (tick || (verdict.look_again && !care_wanted_)) last_tick_ = std::chrono::steady_clock::now();
  care_wanted_ = verdict.look_again;
  HoldBulk(verdict.hold_points);
}

std::vector<Writer::Item> Writer::TakeAll(bool& stop) {
  MutexLock lock(mutex_);
  while (queue_.empty() && chores_.empty() && !stopping_ && !IsTimeForCare()) {
    if (care_wanted_) {
      ready_.WaitFor(mutex_, options_.tick);
    } else {
      ready_.Wait(mutex_);
    }
  }
  stop = queue_.empty() && stopping_;
  std::vector<Item> group;
  int64_t rows = 0;
  while (!queue_.empty() && group.size() < kMaxGroup && rows < kMaxRows) {
    rows += queue_.front().load.rows;
    group.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return group;
}

void Writer::CommitGroup(std::vector<Item> group) {
  uint64_t sequence = sequence_;
  std::vector<Finished> finished;
  std::vector<domain::EventPtr> events;
  const absl::Status status = RunGroup(group, sequence, finished, events);
  NoteHealth(status);
  if (status.ok()) {
    sequence_ = sequence;
    commits_.fetch_add(1, std::memory_order_relaxed);
    if (options_.publish) options_.publish(events, sequence_);
    for (Finished& item : finished) {
      if (item.done) item.done(item.status);
    }
  } else {
    if (options_.on_rollback) options_.on_rollback();
    for (Item& item : group) {
      if (item.done) item.done(status);
    }
  }
}

absl::Status Writer::RunGroup(std::vector<Item>& group, uint64_t& sequence,
                              std::vector<Finished>& finished,
                              std::vector<domain::EventPtr>& events) {
  Transaction transaction(*database_, Transaction::Kind::kWrite);
  if (!transaction.status().ok()) return transaction.status();
  const int64_t wall_micros = options_.clock->WallMicros();
  for (Item& item : group) {
    const size_t events_before = events.size();
    absl::Status transaction_status;
    absl::Status status = RunOne(item, sequence + 1, wall_micros, events, transaction_status);
    if (!transaction_status.ok()) return transaction_status;
    if (status.ok()) {
      ++sequence;
    } else {
      events.resize(events_before);
    }
    finished.push_back({item.done, std::move(status)});
  }
  Statement remember = database_->Prepared("UPDATE meta SET value = ?1 WHERE name = 'sequence'");
  remember.Bind(1, static_cast<int64_t>(sequence));
  if (absl::Status status = remember.Run(); !status.ok()) return status;
  return transaction.Commit();
}

// Runs one piece of work so that its failure undoes it alone. `transaction_status` tells of faults
// that end the whole transaction: the disk, not the work.
absl::Status Writer::RunOne(Item& item, uint64_t sequence, int64_t wall_micros,
                            std::vector<domain::EventPtr>& events,
                            absl::Status& transaction_status) {
  transaction_status = database_->Prepared("SAVEPOINT work").Run();
  if (!transaction_status.ok()) return transaction_status;
  WriteContext context{*database_, sequence, wall_micros, events};
  absl::Status status = item.work(context);
  if (status.code() == absl::StatusCode::kResourceExhausted ||
      status.code() == absl::StatusCode::kDataLoss) {
    transaction_status = status;
    return status;
  }
  if (!status.ok()) {
    transaction_status = database_->Prepared("ROLLBACK TO work").Run();
    if (!transaction_status.ok()) return status;
  }
  transaction_status = database_->Prepared("RELEASE work").Run();
  return status;
}

}  // namespace normlab::storage
