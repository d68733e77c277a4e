// The data folder's database: opened once by one server, written by one thread, read by a few
// short-lived readers.
#ifndef NORMLAB_SERVER_STORAGE_STORE_H_
#define NORMLAB_SERVER_STORAGE_STORE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/storage/attempt_log.h"
#include "server/storage/log_care.h"
#include "server/storage/sqlite.h"
#include "server/storage/writer.h"

namespace normlab::storage {

// Makes a copy another store: with an id of its own, so that tokens of the original are refused, and
// without the processes of the original's attempts, which are not its own to take over or to end.
absl::Status BecomeAnotherStore(Database& copy);

class Store {
 public:
  struct Options {
    std::filesystem::path path;  // of the database file
    Writer::Publish publish;
    const Clock* clock = nullptr;
    LogLimits log_limits;
    std::chrono::milliseconds tick{1000};  // how often what is in the log's way is looked at
  };

  // Opens or creates, migrates forward, and starts the writer. FAILED_PRECONDITION, with nothing
  // touched, for a file on a network file system, one that a newer normlab wrote, one that cannot
  // be written, or one that is no database.
  static absl::StatusOr<std::unique_ptr<Store>> Open(Options options);
  ~Store();

  // Identifies this database among all: part of every resume token.
  const std::string& store_id() const { return store_id_; }
  // Sequence of the latest write when the store was opened.
  uint64_t opened_at_sequence() const { return opened_at_sequence_; }

  Writer& writer() { return *writer_; }
  // Use on the writer's thread only (points_stored excepted).
  AttemptLog& attempt_log() { return attempt_log_; }

  // Runs `work` inside a read transaction of its own. Any thread; `work` must be short: while it
  // reads, the log grows. One that takes more than a second is logged, with the place in the code
  // that asked for it, and counted.
  absl::Status Read(const std::function<absl::Status(Database&)>& work,
                    const char* file = __builtin_FILE(), int line = __builtin_LINE())
      ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t slow_reads() const { return slow_reads_.load(std::memory_order_relaxed); }

  // Any thread.
  LogState log_state() const { return log_care_.state(); }
  // The reads of this server that are going on for more than a second: "run_watch.cc:183".
  std::vector<std::string> SlowReaders() const ABSL_LOCKS_EXCLUDED(mutex_);
  const std::filesystem::path& path() const { return options_.path; }

 private:
  explicit Store(Options options);
  absl::Status Start();
  absl::StatusOr<std::unique_ptr<Database>> TakeReader() ABSL_LOCKS_EXCLUDED(mutex_);

  // A read that goes on.
  struct Reading {
    const char* file;
    int line;
    std::chrono::steady_clock::time_point since;
  };

  const Options options_;
  AttemptLog attempt_log_;
  LogCare log_care_;
  std::atomic<uint64_t> slow_reads_{0};
  std::string store_id_;
  uint64_t opened_at_sequence_ = 0;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Database>> idle_readers_ ABSL_GUARDED_BY(mutex_);
  std::list<Reading> readings_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Writer> writer_;
};

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_STORE_H_
