// Long work on the database: copies, checks, giving space back. One at a time, on a thread of its
// own; what has to be done by the writer is done in slices between commits.
#ifndef NORMLAB_SERVER_APP_STORAGE_TASKS_H_
#define NORMLAB_SERVER_APP_STORAGE_TASKS_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "normlab/v1/storage_service.pb.h"
#include "server/app/api.h"
#include "server/base/mutex.h"
#include "server/storage/store.h"

namespace normlab::app {

class StorageTasks {
 public:
  // Copies are made in `directory`, which is private; what an earlier server left there is removed.
  StorageTasks(storage::Store& store, std::filesystem::path directory);
  ~StorageTasks() { Stop(); }

  // Each starts a task and returns; FAILED_PRECONDITION while another one is under way. Messages go
  // to `tell`, which may wait and says whether anybody still wants to know, and in the end `done`
  // is called, both on the task's thread. See StorageService for what they do. Any thread.
  void Backup(TellBackup tell, TaskDone done) ABSL_LOCKS_EXCLUDED(mutex_);
  void Check(TellCheck tell, TaskDone done) ABSL_LOCKS_EXCLUDED(mutex_);
  void Compact(TellCompact tell, TaskDone done) ABSL_LOCKS_EXCLUDED(mutex_);

  // Breaks off what is under way; nothing starts from now on.
  void BreakOff() { stopping_ = true; }
  // The same, and waits until it has ended: `tell` must not wait for ever, and the writer still
  // run.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Told how far a stage is; false: stop.
  using Progress = std::function<bool(const char* stage, int64_t done, int64_t total)>;

  void Start(std::function<absl::Status()> work, TaskDone done) ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs `slice` again and again on the writer's thread, between commits, until it is true or an
  // error; `tell` hears of it on this thread and may break it off.
  absl::Status InSlices(std::function<absl::StatusOr<bool>(storage::Database&)> slice,
                        const std::function<bool()>& tell);
  // A checked copy that says it is another store. Its faults, if it has any.
  absl::StatusOr<std::vector<std::string>> MakeCopy(const std::filesystem::path& path,
                                                    const Progress& progress);
  absl::Status CopyPages(const std::filesystem::path& path, const Progress& progress);
  absl::Status CheckSpace() const;
  absl::Status SendFile(const std::filesystem::path& path, const TellBackup& tell) const;
  absl::Status DoCompact(const TellCompact& tell);
  int64_t DatabaseBytes() const;
  std::filesystem::path NewCopy();

  storage::Store& store_;
  const std::filesystem::path directory_;
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
  int64_t copies_ = 0;  // of the task's thread
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_STORAGE_TASKS_H_
