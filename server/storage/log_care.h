// Keeps the write-ahead log short: moves it into the database, and says who is in the way.
//
// While somebody reads, the log cannot start again from its beginning and only grows. Our own
// readers are short. A foreign one that is not is named once the log is large; when it is very
// large, points are held back (they have a second home, in the trainers' spools) until the log is
// short again. All else goes on being written.
#ifndef NORMLAB_SERVER_STORAGE_LOG_CARE_H_
#define NORMLAB_SERVER_STORAGE_LOG_CARE_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/storage/log_readers.h"
#include "server/storage/sqlite.h"

namespace normlab::storage {

// Sizes of the log, in bytes.
struct LogLimits {
  int64_t checkpoint = 4 << 20;  // grown by so much: move it into the database
  int64_t truncate = 64 << 20;   // a file larger than that is cut once it is all moved
  int64_t name = 256 << 20;      // say who is in the way
  int64_t hold = 1 << 30;        // hold points back
};

// How the log is.
struct LogState {
  struct Reader {
    LogReader who;
    double seconds = 0;  // seen reading for so long
  };
  int64_t bytes = 0;            // that the log needs, whatever the size of its file
  bool pinned = false;          // larger than it should be
  std::vector<Reader> readers;  // when pinned
  bool holding = false;         // points wait
  int64_t attempts = 0;         // to make it short, now and then while it is large
  absl::Status error;           // of the latest attempt to move it into the database
};

class LogCare {
 public:
  struct Options {
    std::filesystem::path path;  // of the database
    LogLimits limits;
    const Clock* clock = nullptr;
  };
  struct Verdict {
    bool look_again = false;   // soon, even if nothing is written
    bool hold_points = false;  // until told otherwise
  };
  explicit LogCare(Options options) : options_(std::move(options)) {}

  // On the writer's thread, outside a transaction: after each commit and, as long as it wants to
  // look again, also now and then without one (`tick`).
  Verdict Step(Database& database, bool tick) ABSL_LOCKS_EXCLUDED(mutex_);

  // Any thread.
  LogState state() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Time = std::chrono::steady_clock::time_point;

  void Checkpoint(Database& database);
  void Truncate(Database& database);
  void LookForReaders();
  void HoldOrRelease(int64_t bytes);

  const Options options_;
  // Of the writer's thread.
  int64_t tried_at_ = 0;  // bytes of the log at the latest checkpoint
  int64_t attempts_ = 0;
  bool struggling_ = false;
  bool holding_ = false;
  absl::Status error_;
  std::map<int64_t, Time> reading_since_;  // by pid
  std::vector<LogReader> readers_;

  mutable Mutex mutex_;
  LogState state_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_LOG_CARE_H_
