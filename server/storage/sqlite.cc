#include "server/storage/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <utility>

#include "server/base/strings.h"

namespace normlab::storage {
namespace {

constexpr int kBusyMillis = 5000;
constexpr int kTruncateMillis = 1000;
constexpr int kInstructionsBetweenQuestions = 100'000;
constexpr int64_t kLogPageHeader = 24;  // bytes that each page has before it in the log

// Called after each commit with the number of pages in the log.
int NoteLogPages(void* pages, sqlite3*, const char*, int count) {
  *static_cast<int64_t*>(pages) = count;
  return SQLITE_OK;
}

absl::StatusCode CodeOf(int code) {
  switch (code & 0xFF) {
    case SQLITE_FULL:
    case SQLITE_NOMEM:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CANTOPEN:  // often: no file descriptors left for the moment
      return absl::StatusCode::kUnavailable;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_NOTADB:
      return absl::StatusCode::kFailedPrecondition;
    case SQLITE_CONSTRAINT:
      return absl::StatusCode::kAlreadyExists;
    case SQLITE_INTERRUPT:
      return absl::StatusCode::kCancelled;
    case SQLITE_CORRUPT:
      return absl::StatusCode::kDataLoss;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::Status ErrorOf(sqlite3* connection, int code) {
  return absl::Status(CodeOf(code),
                      StrCat("database: ", connection != nullptr ? sqlite3_errmsg(connection)
                                                                 : sqlite3_errstr(code)));
}

}  // namespace

Statement::~Statement() {
  if (statement_ == nullptr) return;
  if (lifetime_ == Lifetime::kOnce) {
    sqlite3_finalize(statement_);
    return;
  }
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Statement::Statement(Statement&& other) noexcept
    : connection_(other.connection_),
      statement_(std::exchange(other.statement_, nullptr)),
      status_(std::move(other.status_)),
      lifetime_(other.lifetime_) {}

void Statement::Note(int code) {
  if (code != SQLITE_OK && status_.ok()) status_ = ErrorOf(connection_, code);
}

void Statement::Bind(int parameter, int64_t value) {
  if (statement_ != nullptr) Note(sqlite3_bind_int64(statement_, parameter, value));
}
void Statement::Bind(int parameter, double value) {
  if (statement_ != nullptr) Note(sqlite3_bind_double(statement_, parameter, value));
}
void Statement::Bind(int parameter, std::string_view text) {
  if (statement_ == nullptr) return;
  Note(sqlite3_bind_text64(statement_, parameter, text.data() == nullptr ? "" : text.data(),
                           text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}
void Statement::BindNull(int parameter) {
  if (statement_ != nullptr) Note(sqlite3_bind_null(statement_, parameter));
}
void Statement::BindBlob(int parameter, std::string_view bytes) {
  if (statement_ == nullptr) return;
  Note(sqlite3_bind_blob64(statement_, parameter, bytes.data() == nullptr ? "" : bytes.data(),
                           bytes.size(), SQLITE_TRANSIENT));
}

bool Statement::Step() {
  if (!status_.ok()) return false;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) status_ = ErrorOf(connection_, code);
  return false;
}

absl::Status Statement::Run() {
  while (Step()) {
  }
  return status_;
}

void Statement::Reset() {
  if (statement_ != nullptr) sqlite3_reset(statement_);
}

bool Statement::IsNull(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}
int64_t Statement::Integer(int column) const { return sqlite3_column_int64(statement_, column); }
double Statement::Real(int column) const { return sqlite3_column_double(statement_, column); }
std::string Statement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (text == nullptr) return "";
  return std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
}
std::string Statement::Blob(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  if (bytes == nullptr) return "";
  return std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
}
std::optional<int64_t> Statement::MaybeInteger(int column) const {
  if (IsNull(column)) return std::nullopt;
  return Integer(column);
}
std::optional<double> Statement::MaybeReal(int column) const {
  if (IsNull(column)) return std::nullopt;
  return Real(column);
}
Statement::Type Statement::TypeOf(int column) const {
  switch (sqlite3_column_type(statement_, column)) {
    case SQLITE_NULL:
      return Type::kNull;
    case SQLITE_INTEGER:
      return Type::kInteger;
    case SQLITE_FLOAT:
      return Type::kReal;
    default:
      return Type::kText;
  }
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::filesystem::path& path,
                                                         Access access) {
  if (access == Access::kReadWrite) {
    // SQLite would create the file by the umask; what it holds is nobody else's business.
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return absl::ErrnoToStatus(errno, StrCat("cannot open ", path.string()));
    close(fd);
  }
  sqlite3* connection = nullptr;
  const int flags = access == Access::kReadWrite ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
  const int code = sqlite3_open_v2(path.c_str(), &connection, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<Database> database(new Database(connection));
  if (code != SQLITE_OK) return ErrorOf(connection, code);
  sqlite3_busy_timeout(connection, kBusyMillis);
  sqlite3_extended_result_codes(connection, 1);
  if (access == Access::kReadWrite) {
    const absl::StatusOr<int64_t> pages = database->PragmaInteger("page_count");
    if (!pages.ok()) return pages.status();
    // Possible before anything is in the file only, and a write to one that has something.
    if (*pages == 0) {
      const absl::Status set = database->Execute("PRAGMA auto_vacuum = INCREMENTAL");
      if (!set.ok()) return set;
    }
  }
  // A new run touches a page for each setting: what is kept to undo that, in case only this piece
  // of work fails, would else go through a file made and removed each time.
  absl::Status status = database->Execute(
      access == Access::kReadWrite
          ? "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
            "PRAGMA trusted_schema = OFF; PRAGMA cache_size = -16384;"
            "PRAGMA temp_store = MEMORY;"
          : "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF; PRAGMA cache_size = -1024;");
  if (!status.ok()) return status;
  if (access == Access::kReadWrite) {
    const absl::StatusOr<int64_t> page = database->PragmaInteger("page_size");
    if (!page.ok()) return page.status();
    database->log_page_bytes_ = *page + kLogPageHeader;
    sqlite3_wal_hook(connection, NoteLogPages, &database->log_pages_);
  }
  return database;
}

absl::StatusOr<bool> Database::Checkpoint(CheckpointMode mode) {
  const bool truncate = mode == CheckpointMode::kTruncate;
  int in_log = 0, moved = 0;
  sqlite3_busy_timeout(connection_, truncate ? kTruncateMillis : 0);
  const int code = sqlite3_wal_checkpoint_v2(
      connection_, nullptr, truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE,
      &in_log, &moved);
  const absl::Status status = code == SQLITE_OK ? absl::OkStatus() : ErrorOf(connection_, code);
  sqlite3_busy_timeout(connection_, kBusyMillis);
  if (in_log >= 0) log_pages_ = in_log;
  if ((code & 0xFF) == SQLITE_BUSY) return false;
  if (!status.ok()) return status;
  return in_log == moved;
}

Database::~Database() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(connection_);
}

Statement Database::Prepared(std::string_view sql) {
  auto found = statements_.find(sql);
  if (found == statements_.end()) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(connection_, sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) return Statement(connection_, nullptr, ErrorOf(connection_, code));
    found = statements_.emplace(sql, statement).first;
  }
  return Statement(connection_, found->second, absl::OkStatus());
}

Statement Database::Once(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(connection_, sql.data(), static_cast<int>(sql.size()),
                                      &statement, nullptr);
  if (code != SQLITE_OK) return Statement(connection_, nullptr, ErrorOf(connection_, code));
  return Statement(connection_, statement, absl::OkStatus(), Statement::Lifetime::kOnce);
}

absl::Status Database::Execute(const std::string& sql) {
  const int code = sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : ErrorOf(connection_, code);
}

void Database::ContinueWhile(std::function<bool()> wanted) {
  wanted_ = std::move(wanted);
  sqlite3_progress_handler(
      connection_, kInstructionsBetweenQuestions,
      [](void* self) { return static_cast<Database*>(self)->wanted_() ? 0 : 1; }, this);
}

absl::StatusOr<int64_t> Database::PragmaInteger(const std::string& name) {
  sqlite3_stmt* statement = nullptr;
  const std::string sql = "PRAGMA " + name;
  int code = sqlite3_prepare_v2(connection_, sql.c_str(), -1, &statement, nullptr);
  int64_t value = 0;
  if (code == SQLITE_OK) {
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW) value = sqlite3_column_int64(statement, 0);
  }
  sqlite3_finalize(statement);
  if (code != SQLITE_ROW && code != SQLITE_DONE) return ErrorOf(connection_, code);
  return value;
}

Transaction::Transaction(Database& database, Kind kind) : database_(database) {
  status_ = database_.Execute(kind == Kind::kWrite ? "BEGIN IMMEDIATE" : "BEGIN DEFERRED");
  open_ = status_.ok();
}

Transaction::~Transaction() {
  // After a failed commit SQLite may have rolled back by itself; a second rollback only complains.
  if (open_) database_.Execute("ROLLBACK").IgnoreError();
}

absl::Status Transaction::Commit() {
  if (!open_) return status_;
  status_ = database_.Execute("COMMIT");
  if (status_.ok()) open_ = false;
  return status_;
}

}  // namespace normlab::storage
