#include "server/storage/log_care.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "server/base/log.h"
#include "server/base/strings.h"

namespace normlab::storage {
namespace {

std::filesystem::path Beside(const std::filesystem::path& database, const char* suffix) {
  std::filesystem::path path = database;
  path += suffix;
  return path;
}

}  // namespace

LogCare::Verdict LogCare::Step(Database& database, bool tick) {
  // It starts again from its beginning by itself, at the first write after all was moved.
  tried_at_ = std::min(tried_at_, database.log_bytes());
  const bool grown = database.log_bytes() - tried_at_ >= options_.limits.checkpoint;
  // With somebody in the way each attempt costs a look at the whole log: then only now and then.
  if (tick || (grown && !struggling_)) Checkpoint(database);
  if (tick) ++attempts_;
  const int64_t bytes = database.log_bytes();
  struggling_ = !error_.ok() || bytes > options_.limits.truncate;
  const bool pinned = bytes > options_.limits.name;
  if (!struggling_) {
    readers_.clear();
    reading_since_.clear();
  } else if (tick || (pinned && readers_.empty())) {
    LookForReaders();
  }
  HoldOrRelease(bytes);
  MutexLock lock(mutex_);
  state_.bytes = bytes;
  state_.pinned = pinned;
  state_.holding = holding_;
  state_.attempts = attempts_;
  state_.error = error_;
  state_.readers.clear();
  if (pinned) {
    for (const LogReader& reader : readers_) {
      const std::chrono::duration<double> time = options_.clock->Now() - reading_since_[reader.pid];
      state_.readers.push_back({reader, time.count()});
    }
  }
  return {.look_again = struggling_, .hold_points = holding_};
}

void LogCare::Checkpoint(Database& database) {
  const absl::StatusOr<bool> complete = database.Checkpoint(Database::CheckpointMode::kPassive);
  if (error_.ok() && !complete.ok()) {
    LogError("the write-ahead log cannot be moved into the database",
             {{"error", std::string(complete.status().message())}});
  }
  error_ = complete.status();
  tried_at_ = database.log_bytes();
  if (!complete.ok() || !*complete) return;
  std::error_code error;
  const auto size = std::filesystem::file_size(Beside(options_.path, "-wal"), error);
  if (!error && static_cast<int64_t>(size) > options_.limits.truncate) Truncate(database);
}

// Everything was moved: the file can be cut, unless somebody still reads in it. Our own readers are
// waited for.
void LogCare::Truncate(Database& database) {
  LookForReaders();
  if (!readers_.empty()) return;
  const absl::StatusOr<bool> complete = database.Checkpoint(Database::CheckpointMode::kTruncate);
  error_ = complete.status();
  tried_at_ = database.log_bytes();
}

void LogCare::LookForReaders() {
  absl::StatusOr<std::vector<LogReader>> found = ForeignLogReaders(Beside(options_.path, "-shm"));
  if (!found.ok()) {
    LogWarning("readers of the database cannot be found",
               {{"error", std::string(found.status().message())}});
    found = std::vector<LogReader>();
  }
  readers_ = *std::move(found);
  std::map<int64_t, Time> since;
  for (const LogReader& reader : readers_) {
    const auto known = reading_since_.find(reader.pid);
    since[reader.pid] = known != reading_since_.end() ? known->second : options_.clock->Now();
  }
  reading_since_ = std::move(since);
}

void LogCare::HoldOrRelease(int64_t bytes) {
  const bool hold = bytes > (holding_ ? options_.limits.name : options_.limits.hold);
  if (hold == holding_) return;
  holding_ = hold;
  if (hold) {
    LogWarning("points wait until the write-ahead log is short", {{"bytes", StrCat(bytes)}});
  } else {
    LogInfo("points are stored again");
  }
}

LogState LogCare::state() const {
  MutexLock lock(mutex_);
  return state_;
}

}  // namespace normlab::storage
