#include "server/app/storage_tasks.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>

#include "server/base/ids.h"
#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/storage/page_copy.h"
#include "server/storage/store_check.h"

namespace normlab::app {
namespace {

using storage::Database;

constexpr int kPagesOfCopy = 256;         // a slice: 1 MiB
constexpr int kPagesToFree = 128;         // a slice; each is moved within the file
constexpr int64_t kPiece = 1 << 20;       // bytes; a message of gRPC has 4 MiB at most
constexpr uint64_t kRoomLeft = 64 << 20;  // bytes that stay free beside a copy
constexpr std::chrono::milliseconds kTellPeriod(200);

// What one slice of work on the writer's thread tells the task's.
struct SliceState {
  Mutex mutex;
  CondVar changed;
  bool wanted ABSL_GUARDED_BY(mutex) = true;
  bool ended ABSL_GUARDED_BY(mutex) = false;
  absl::Status status ABSL_GUARDED_BY(mutex);
};

template <typename Response>
Response ProgressOf(const char* stage, int64_t done, int64_t total) {
  Response response;
  response.mutable_progress()->set_stage(stage);
  response.mutable_progress()->set_done(done);
  response.mutable_progress()->set_total(total);
  return response;
}

// Removes the copy and what SQLite put beside it.
class CopyFile {
 public:
  explicit CopyFile(std::filesystem::path path) : path_(std::move(path)) {}
  ~CopyFile() {
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
      unlink(StrCat(path_.string(), suffix).c_str());
    }
  }
  CopyFile(const CopyFile&) = delete;
  CopyFile& operator=(const CopyFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  const std::filesystem::path path_;
};

std::string FirstFaults(const std::vector<std::string>& faults) {
  std::string text = faults.front();
  if (faults.size() > 1) StrAppend(&text, "; and ", faults.size() - 1, " more");
  return text;
}

}  // namespace

StorageTasks::StorageTasks(storage::Store& store, std::filesystem::path directory)
    : store_(store), directory_(std::move(directory)) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
    if (entry.path().extension() == ".copy" ||
        entry.path().string().find(".copy-") != std::string::npos) {
      LogInfo("removing an unfinished copy", {{"file", entry.path().string()}});
      std::filesystem::remove(entry.path(), error);
    }
  }
}

void StorageTasks::Start(std::function<absl::Status()> work, TaskDone done) {
  {
    MutexLock lock(mutex_);
    if (!busy_ && !stopping_) {
      busy_ = true;
      if (thread_.joinable()) thread_.join();  // it has nothing more to do
      thread_ = std::thread([this, work = std::move(work), done = std::move(done)] {
        const absl::Status status = work();
        {
          MutexLock end(mutex_);
          busy_ = false;
        }
        done(status);
      });
      return;
    }
  }
  done(absl::FailedPreconditionError(
      "the server is at work on its database already (a backup, a check or a compaction); try "
      "again when that is done"));
}

void StorageTasks::Stop() {
  BreakOff();
  std::thread last;
  {
    MutexLock lock(mutex_);
    last.swap(thread_);
  }
  if (last.joinable()) last.join();
}

absl::Status StorageTasks::InSlices(std::function<absl::StatusOr<bool>(Database&)> slice,
                                    const std::function<bool()>& tell) {
  const auto state = std::make_shared<SliceState>();
  store_.writer().AddChore([state, slice = std::move(slice)](Database* database) {
    bool wanted = false;
    {
      MutexLock lock(state->mutex);
      wanted = state->wanted;
    }
    absl::StatusOr<bool> ended = absl::CancelledError("broken off");
    if (database == nullptr) {
      ended = absl::CancelledError("the server is stopping");
    } else if (wanted) {
      ended = slice(*database);
    }
    if (ended.ok() && !*ended) return true;
    MutexLock lock(state->mutex);
    state->status = ended.status();
    state->ended = true;
    state->changed.NotifyAll();
    return false;
  });
  while (true) {
    {
      MutexLock lock(state->mutex);
      if (!state->ended) state->changed.WaitFor(state->mutex, kTellPeriod);
      if (state->ended) return state->status;
    }
    const bool wanted = tell() && !stopping_;
    MutexLock lock(state->mutex);
    state->wanted = state->wanted && wanted;
  }
}

// --- copies ---

std::filesystem::path StorageTasks::NewCopy() {
  return directory_ / StrCat("normlab-", getpid(), "-", ++copies_, ".copy");
}

int64_t StorageTasks::DatabaseBytes() const {
  std::error_code error;
  const auto size = std::filesystem::file_size(store_.path(), error);
  return error ? 0 : static_cast<int64_t>(size);
}

absl::Status StorageTasks::CheckSpace() const {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory_, error);
  if (error) return absl::InternalError(StrCat("cannot look at the disk: ", error.message()));
  const uint64_t needed = static_cast<uint64_t>(DatabaseBytes()) +
                          static_cast<uint64_t>(store_.log_state().bytes) + kRoomLeft;
  if (space.available >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(StrCat("a copy of the database needs ", needed >> 20,
                                             " MiB on its disk for a while, and ",
                                             space.available >> 20, " MiB are free: make room"));
}

absl::Status StorageTasks::CopyPages(const std::filesystem::path& path, const Progress& progress) {
  struct Pages {
    std::atomic<int64_t> copied{0}, total{0};
  };
  const auto pages = std::make_shared<Pages>();
  // It is begun, stepped and ended on the writer's thread.
  const auto copy = std::make_shared<std::unique_ptr<storage::PageCopy>>();
  const auto slice = [pages, copy, path](Database& database) -> absl::StatusOr<bool> {
    if (*copy == nullptr) {
      absl::StatusOr<std::unique_ptr<storage::PageCopy>> begun =
          storage::PageCopy::Start(database, path);
      if (!begun.ok()) return begun.status();
      *copy = *std::move(begun);
    }
    absl::StatusOr<bool> ended = (*copy)->Step(kPagesOfCopy);
    pages->copied = (*copy)->copied_pages();
    pages->total = (*copy)->total_pages();
    if (!ended.ok() || *ended) copy->reset();
    return ended;
  };
  return InSlices(slice, [&] { return progress("copying", pages->copied, pages->total); });
}

absl::StatusOr<std::vector<std::string>> StorageTasks::MakeCopy(const std::filesystem::path& path,
                                                                const Progress& progress) {
  if (absl::Status status = CheckSpace(); !status.ok()) return status;
  if (absl::Status status = CopyPages(path, progress); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<Database>> copy =
      Database::Open(path, Database::Access::kReadWrite);
  if (!copy.ok()) return std::vector<std::string>{std::string(copy.status().message())};
  auto told = std::chrono::steady_clock::now();
  (*copy)->ContinueWhile([&, told]() mutable {
    if (stopping_) return false;
    const auto now = std::chrono::steady_clock::now();
    if (now - told < kTellPeriod) return true;
    told = now;
    return progress("checking", 0, 0);
  });
  if (absl::Status status = storage::BecomeAnotherStore(**copy); !status.ok()) return status;
  return storage::CheckStore(**copy);
}

void StorageTasks::Backup(TellBackup tell, TaskDone done) {
  Start(
      [this, tell = std::move(tell)]() -> absl::Status {
        const CopyFile copy(NewCopy());
        const absl::StatusOr<std::vector<std::string>> faults =
            MakeCopy(copy.path(), [&tell](const char* stage, int64_t at, int64_t total) {
              return tell(ProgressOf<v1::BackupResponse>(stage, at, total));
            });
        if (!faults.ok()) return faults.status();
        if (!faults->empty()) {
          return absl::DataLossError(
              StrCat("the database has faults, and no copy was made: ", FirstFaults(*faults)));
        }
        return SendFile(copy.path(), tell);
      },
      std::move(done));
}

absl::Status StorageTasks::SendFile(const std::filesystem::path& path,
                                    const TellBackup& tell) const {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (error) return absl::InternalError(StrCat("the copy is gone: ", error.message()));
  for (int64_t sent = 0; sent < size;) {
    v1::BackupResponse response;
    const int64_t wanted = std::min(kPiece, size - sent);
    std::string& data = *response.mutable_data();
    data.resize(static_cast<size_t>(wanted));
    file.read(data.data(), wanted);
    if (file.gcount() != wanted) return absl::InternalError("the copy cannot be read");
    if (sent == 0) response.set_total_bytes(size);
    sent += wanted;
    if (stopping_ || !tell(std::move(response))) return absl::CancelledError("broken off");
  }
  return absl::OkStatus();
}

void StorageTasks::Check(TellCheck tell, TaskDone done) {
  Start(
      [this, tell = std::move(tell)]() -> absl::Status {
        const CopyFile copy(NewCopy());
        const absl::StatusOr<std::vector<std::string>> faults =
            MakeCopy(copy.path(), [&tell](const char* stage, int64_t at, int64_t total) {
              return tell(ProgressOf<v1::CheckStorageResponse>(stage, at, total));
            });
        if (!faults.ok()) return faults.status();
        v1::CheckStorageResponse response;
        response.set_complete(true);
        for (const std::string& fault : *faults) response.add_faults(fault);
        tell(std::move(response));
        return absl::OkStatus();
      },
      std::move(done));
}

// --- giving space back ---

absl::Status StorageTasks::DoCompact(const TellCompact& tell) {
  const auto size = [this] { return DatabaseBytes() + store_.log_state().bytes; };
  const int64_t before = size();
  struct Pages {
    std::atomic<int64_t> first{-1}, left{0};
    std::atomic<bool> rewriting{false};
  };
  const auto pages = std::make_shared<Pages>();
  const auto slice = [pages](Database& database) -> absl::StatusOr<bool> {
    const absl::StatusOr<int64_t> mode = database.PragmaInteger("auto_vacuum");
    if (!mode.ok()) return mode.status();
    if (*mode != 2) {
      // Made by an early version: pages can be moved only after all of it was written anew, once.
      pages->rewriting = true;
      absl::Status status = database.Execute("PRAGMA auto_vacuum = INCREMENTAL; VACUUM");
      if (!status.ok()) return status;
    }
    const absl::StatusOr<int64_t> unused = database.PragmaInteger("freelist_count");
    if (!unused.ok()) return unused.status();
    if (pages->first < 0) pages->first = *unused;
    pages->left = *unused;
    if (*unused > 0) {
      absl::Status status =
          database.Execute(StrCat("PRAGMA incremental_vacuum(", kPagesToFree, ")"));
      if (!status.ok()) return status;
      return false;
    }
    // The file becomes shorter when the log is moved into it.
    const absl::StatusOr<bool> moved = database.Checkpoint(Database::CheckpointMode::kTruncate);
    return moved.ok() ? absl::StatusOr<bool>(true) : moved;
  };
  absl::Status status = InSlices(slice, [&] {
    const int64_t first = std::max<int64_t>(pages->first, pages->left);
    return tell(ProgressOf<v1::CompactStorageResponse>(
        pages->rewriting && pages->first < 0 ? "rewriting" : "compacting", first - pages->left,
        first));
  });
  if (!status.ok()) return status;
  v1::CompactStorageResponse response;
  response.set_complete(true);
  response.set_bytes_before(before);
  response.set_bytes_after(size());
  tell(std::move(response));
  return absl::OkStatus();
}

void StorageTasks::Compact(TellCompact tell, TaskDone done) {
  Start([this, tell = std::move(tell)] { return DoCompact(tell); }, std::move(done));
}

}  // namespace normlab::app
