#include "server/storage/store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "server/base/files.h"
#include "server/base/ids.h"
#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/storage/migrations.h"
#include "server/storage/runs.h"

namespace normlab::storage {
namespace {

constexpr size_t kIdleReaders = 4;
constexpr int kStoreIdBytes = 6;
constexpr std::chrono::seconds kLongestRead(1);

std::string PlaceName(const char* file, int line) {
  return StrCat(std::filesystem::path(file).filename().string(), ":", line);
}

// Of a file that is there already. SQLite itself would only say that something is read-only, and
// for root nothing ever is.
absl::Status CheckFile(const std::filesystem::path& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus()
                           : absl::ErrnoToStatus(errno, StrCat("cannot look at ", path.string()));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(StrCat(path.string(), " is no file"));
  }
  if (info.st_uid != geteuid()) {
    return absl::FailedPreconditionError(
        StrCat(path.string(), " belongs to another user (uid ", info.st_uid,
               "); run normlabd as that user, or choose another folder with --data-dir"));
  }
  if ((info.st_mode & S_IWUSR) == 0 || access(path.c_str(), W_OK) != 0) {
    return absl::FailedPreconditionError(
        StrCat(path.string(), " cannot be written; if it is to be: chmod u+w ", path.string()));
  }
  return absl::OkStatus();
}

absl::Status CheckPlace(const std::filesystem::path& path) {
  if (OnNetworkFileSystem(path.parent_path())) {
    return absl::FailedPreconditionError(StrCat(
        path.parent_path().string(),
        " is on a network file system, where the database cannot be kept safely; choose a local "
        "folder with --data-dir"));
  }
  return CheckFile(path);
}

absl::StatusOr<std::string> StoreId(Database& database) {
  Statement select = database.Prepared("SELECT value FROM meta WHERE name = 'store_id'");
  if (select.Step()) return select.Text(0);
  if (!select.status().ok()) return select.status();
  const std::string id = RandomHex(kStoreIdBytes);
  Statement insert =
      database.Prepared("INSERT INTO meta (name, value) VALUES ('store_id', ?1), ('sequence', 0)");
  insert.Bind(1, id);
  if (absl::Status status = insert.Run(); !status.ok()) return status;
  return id;
}

}  // namespace

absl::Status BecomeAnotherStore(Database& copy) {
  Statement rename = copy.Prepared("UPDATE meta SET value = ?1 WHERE name = 'store_id'");
  rename.Bind(1, RandomHex(kStoreIdBytes));
  if (absl::Status status = rename.Run(); !status.ok()) return status;
  // As after the machine has started anew: whatever has those numbers now is somebody else.
  return copy.Execute(
      "UPDATE attempts SET shepherd_boot_id = 'of the original' "
      "WHERE end_time IS NULL AND shepherd_pid IS NOT NULL");
}

Store::Store(Options options)
    : options_(std::move(options)),
      attempt_log_(*options_.clock),
      log_care_({.path = options_.path, .limits = options_.log_limits, .clock = options_.clock}) {}

Store::~Store() {
  if (writer_) writer_->Stop();
  {
    // Readers go first: the last connection to close folds the WAL into the database, and only the
    // writer's may.
    MutexLock lock(mutex_);
    idle_readers_.clear();
  }
  writer_.reset();
}

absl::StatusOr<std::unique_ptr<Store>> Store::Open(Options options) {
  if (absl::Status status = CheckPlace(options.path); !status.ok()) return status;
  std::unique_ptr<Store> store(new Store(std::move(options)));
  if (absl::Status status = store->Start(); !status.ok()) {
    return absl::Status(status.code(),
                        StrCat(store->options_.path.string(), ": ", status.message()));
  }
  return store;
}

absl::Status Store::Start() {
  absl::StatusOr<std::unique_ptr<Database>> database =
      Database::Open(options_.path, Database::Access::kReadWrite);
  if (!database.ok()) return database.status();
  if (absl::Status status = Migrate(**database); !status.ok()) return status;
  absl::StatusOr<std::string> id = StoreId(**database);
  if (!id.ok()) return id.status();
  store_id_ = *std::move(id);
  absl::StatusOr<uint64_t> sequence = ReadSequence(**database);
  if (!sequence.ok()) return sequence.status();
  opened_at_sequence_ = *sequence;
  Writer::Options writer_options;
  writer_options.publish = options_.publish;
  writer_options.clock = options_.clock;
  writer_options.on_rollback = [this] { attempt_log_.Forget(); };
  writer_options.care = [this](Database& of_writer, bool tick) {
    return log_care_.Step(of_writer, tick);
  };
  writer_options.tick = options_.tick;
  writer_ = std::make_unique<Writer>(*std::move(database), *sequence, std::move(writer_options));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Database>> Store::TakeReader() {
  {
    MutexLock lock(mutex_);
    if (!idle_readers_.empty()) {
      std::unique_ptr<Database> reader = std::move(idle_readers_.back());
      idle_readers_.pop_back();
      return reader;
    }
  }
  return Database::Open(options_.path, Database::Access::kReadOnly);
}

absl::Status Store::Read(const std::function<absl::Status(Database&)>& work, const char* file,
                         int line) {
  absl::StatusOr<std::unique_ptr<Database>> reader = TakeReader();
  if (!reader.ok()) return reader.status();
  const auto start = options_.clock->Now();
  std::list<Reading>::iterator reading;
  {
    MutexLock lock(mutex_);
    reading = readings_.insert(readings_.end(), {file, line, start});
  }
  absl::Status status;
  {
    Transaction transaction(**reader, Transaction::Kind::kRead);
    status = transaction.status().ok() ? work(**reader) : transaction.status();
  }
  const std::chrono::duration<double> time = options_.clock->Now() - start;
  if (time > kLongestRead) {
    slow_reads_.fetch_add(1, std::memory_order_relaxed);
    LogWarning("a read took long",
               {{"by", PlaceName(file, line)}, {"seconds", StrCat(time.count())}});
  }
  MutexLock lock(mutex_);
  readings_.erase(reading);
  if (idle_readers_.size() < kIdleReaders) idle_readers_.push_back(*std::move(reader));
  return status;
}

std::vector<std::string> Store::SlowReaders() const {
  MutexLock lock(mutex_);
  std::vector<std::string> places;
  for (const Reading& reading : readings_) {
    if (options_.clock->Now() - reading.since > kLongestRead) {
      places.push_back(PlaceName(reading.file, reading.line));
    }
  }
  return places;
}

}  // namespace normlab::storage
