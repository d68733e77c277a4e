// The one thread that writes. Work handed in while a commit is under way is committed together as
// soon as that commit has ended (natural group commit, no timer), then published, then
// acknowledged: nobody sees or is told of anything that a crash could take back.
//
//   writer.Submit([=](WriteContext& context) { return UpdateRun(context, ...); },
//                 [](const absl::Status& status) { ... });   // after the commit
#ifndef NORMLAB_SERVER_STORAGE_WRITER_H_
#define NORMLAB_SERVER_STORAGE_WRITER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/domain/event.h"
#include "server/storage/log_care.h"
#include "server/storage/sqlite.h"

namespace normlab::storage {

// What one piece of work may use while it runs on the writer's thread.
struct WriteContext {
  Database& database;
  uint64_t sequence;    // of this piece of work: the number by which watchers resume
  int64_t wall_micros;  // one time for the whole commit
  std::vector<domain::EventPtr>& events;  // published, in order, once the commit is durable

  // Adds an event of this piece of work.
  void Publish(const std::string& run, v1::WatchRunsResponse message) {
    events.push_back(std::make_shared<domain::Event>(sequence, run, std::move(message)));
  }
};

// How much a piece of work writes, and whether it may wait.
struct Load {
  int64_t rows = 1;   // about; a commit is cut at some number of them
  bool bulk = false;  // waits while bulk is held: points, which their trainers keep until stored
};

class Writer {
 public:
  // Reads and writes; a failure undoes this piece of work only and is told to `done`.
  using Work = std::function<absl::Status(WriteContext&)>;
  using Done = std::function<void(const absl::Status&)>;
  // Called on the writer's thread after each commit, with the sequence now reached.
  using Publish = std::function<void(const std::vector<domain::EventPtr>&, uint64_t sequence)>;

  struct Options {
    // Called after a transaction was rolled back as a whole (a full disk): what was kept in memory
    // about the database must be forgotten.
    std::function<void()> on_rollback;
    Publish publish;
    const Clock* clock = nullptr;
    // Looks after the log, on the writer's thread and outside a transaction: after each commit and,
    // as long as it wants to look again, every `tick`.
    std::function<LogCare::Verdict(Database&, bool tick)> care;
    std::chrono::milliseconds tick{1000};
  };

  // `sequence` is the latest one in the database.
  Writer(std::unique_ptr<Database> database, uint64_t sequence, Options options);
  ~Writer();

  // Any thread. `done` is called on the writer's thread, or right here after Stop.
  void Submit(Work work, Done done, Load load = {}) ABSL_LOCKS_EXCLUDED(mutex_);

  // Any thread but the writer's: submits and waits.
  absl::Status Write(Work work);

  // Long work that is done in slices between commits: called on the writer's thread, outside a
  // transaction, again and again until it returns false. With nullptr, once, when the writer stops
  // before that. Any thread.
  using Chore = std::function<bool(Database*)>;
  void AddChore(Chore chore) ABSL_LOCKS_EXCLUDED(mutex_);

  // Commits what was submitted before, then ends the thread. Later work, and what is held, gets
  // CANCELLED.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t commits() const { return commits_.load(std::memory_order_relaxed); }
  // The latest failure of a commit, until one has worked and none failed for some seconds: on a full
  // disk small ones work now and then.
  absl::Status health() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Item {
    Work work;
    Done done;
    Load load;
  };
  struct Finished {
    Done done;
    absl::Status status;
  };

  void Loop();
  void NoteHealth(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for work. Nothing: it is time for care or a chore, or to stop.
  std::vector<Item> TakeAll(bool& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  // While held, bulk work stays in the queue and everything else is still written.
  void HoldBulk(bool held) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsTimeForCare() const;
  void TakeCare();
  void DoChore() ABSL_LOCKS_EXCLUDED(mutex_);
  void CommitGroup(std::vector<Item> group);
  absl::Status RunGroup(std::vector<Item>& group, uint64_t& sequence,
                        std::vector<Finished>& finished, std::vector<domain::EventPtr>& events);
  absl::Status RunOne(Item& item, uint64_t sequence, int64_t wall_micros,
                      std::vector<domain::EventPtr>& events, absl::Status& transaction_status);

  const std::unique_ptr<Database> database_;
  const Options options_;
  // Of the writer's thread.
  uint64_t sequence_;
  bool care_wanted_ = false;
  std::chrono::steady_clock::time_point last_tick_{};

  std::atomic<uint64_t> commits_{0};

  mutable Mutex mutex_;
  CondVar ready_;
  std::deque<Item> queue_ ABSL_GUARDED_BY(mutex_);
  std::deque<Item> held_ ABSL_GUARDED_BY(mutex_);  // bulk work that waits
  bool holding_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Chore> chores_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status latest_ ABSL_GUARDED_BY(mutex_);   // of the latest commit
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // of the latest that failed, not too long ago
  std::chrono::steady_clock::time_point failed_at_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_WRITER_H_
