// A thin, typed wrapper over SQLite's C interface: errors are absl::Status with SQLite's own text,
// statements are prepared once a connection and reset by scope.
//
//   Statement statement = database.Prepared("SELECT step FROM runs WHERE id = ?1");
//   statement.Bind(1, id);
//   while (statement.Step()) use(statement.Integer(0));
//   return statement.status();
//
// A Database and its statements belong to one thread at a time.
#ifndef NORMLAB_SERVER_STORAGE_SQLITE_H_
#define NORMLAB_SERVER_STORAGE_SQLITE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_backup;
struct sqlite3_stmt;

namespace normlab::storage {

// A prepared statement. One that the database keeps is reset for its next use when it leaves scope;
// one for a single use is freed.
class Statement {
 public:
  enum class Lifetime { kKept, kOnce };
  Statement(sqlite3* connection, sqlite3_stmt* statement, absl::Status status,
            Lifetime lifetime = Lifetime::kKept)
      : connection_(connection),
        statement_(statement),
        status_(std::move(status)),
        lifetime_(lifetime) {}
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;

  // Parameters count from 1. Text is copied. NaN has no place in a column: bind it as Null.
  void Bind(int parameter, int64_t value);
  void Bind(int parameter, double value);
  void Bind(int parameter, std::string_view text);
  void BindNull(int parameter);
  void BindBlob(int parameter, std::string_view bytes);
  template <typename T>
  void Bind(int parameter, const std::optional<T>& value) {
    if (value) {
      Bind(parameter, *value);
    } else {
      BindNull(parameter);
    }
  }

  // True when there is a row; false at the end or on an error, which status() then tells.
  bool Step();
  // For statements without rows.
  absl::Status Run();
  // Lets the statement be bound and stepped again.
  void Reset();
  const absl::Status& status() const { return status_; }

  // Columns count from 0.
  bool IsNull(int column) const;
  int64_t Integer(int column) const;
  double Real(int column) const;
  std::string Text(int column) const;
  std::string Blob(int column) const;
  std::optional<int64_t> MaybeInteger(int column) const;
  std::optional<double> MaybeReal(int column) const;
  enum class Type { kNull, kInteger, kReal, kText };
  Type TypeOf(int column) const;

 private:
  void Note(int code);

  sqlite3* connection_;
  sqlite3_stmt* statement_;
  absl::Status status_;
  Lifetime lifetime_;
};

class Database {
 public:
  enum class Access { kReadWrite, kReadOnly };

  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Opens (kReadWrite: creates, 0600) and sets the connection up: WAL, full sync, foreign keys,
  // 5 s of patience with a lock. Whoever writes must see to checkpoints: none come by themselves.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::filesystem::path& path,
                                                        Access access);

  // The prepared form of `sql`, kept for the life of the connection. `sql` must be a literal.
  Statement Prepared(std::string_view sql);
  // Of any text, for one use.
  Statement Once(const std::string& sql);

  // Runs any number of statements without parameters.
  absl::Status Execute(const std::string& sql);

  // Moves the write-ahead log into the database; outside a transaction. True when all of it was
  // moved; false when readers are in the way. kPassive moves what can be moved at once. kTruncate
  // waits for readers, a second at most, and cuts the log to nothing.
  enum class CheckpointMode { kPassive, kTruncate };
  absl::StatusOr<bool> Checkpoint(CheckpointMode mode);
  // What is in the log, as of this connection's latest write or checkpoint.
  int64_t log_bytes() const { return log_pages_ * log_page_bytes_; }

  // Makes statements that are running or yet to come fail with CANCELLED once `wanted` returns
  // false; it is asked now and then.
  void ContinueWhile(std::function<bool()> wanted);

  // `PRAGMA name` as an integer.
  absl::StatusOr<int64_t> PragmaInteger(const std::string& name);

 private:
  friend class PageCopy;
  explicit Database(sqlite3* connection) : connection_(connection) {}

  sqlite3* const connection_;
  std::unordered_map<std::string_view, sqlite3_stmt*> statements_;
  int64_t log_pages_ = 0;
  int64_t log_page_bytes_ = 0;
  std::function<bool()> wanted_;
};

// BEGIN on construction, ROLLBACK on destruction unless committed.
class Transaction {
 public:
  enum class Kind { kRead, kWrite };
  Transaction(Database& database, Kind kind);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  const absl::Status& status() const { return status_; }
  absl::Status Commit();

 private:
  Database& database_;
  absl::Status status_;
  bool open_ = false;
};

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_SQLITE_H_
