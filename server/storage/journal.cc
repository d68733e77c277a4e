#include "server/storage/journal.h"

#include <string>
#include <string_view>
#include <vector>

#include "server/base/strings.h"

namespace normlab::storage {
namespace {

void AppendNumber(std::string& bytes, uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  bytes += static_cast<char>(number);
}

// Takes a number off the front; false when there is no whole one.
bool TakeNumber(std::string_view& bytes, uint64_t& number) {
  number = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    number |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

absl::StatusOr<int64_t> CountRows(Database& database, int64_t attempt) {
  Statement select = database.Prepared("SELECT count(*) FROM journal WHERE attempt = ?1");
  select.Bind(1, attempt);
  if (!select.Step()) return select.status();
  return select.Integer(0);
}

absl::Status InsertPage(Database& database, int64_t attempt, int64_t first_sequence,
                        int64_t first_step, const std::string& steps) {
  Statement insert = database.Prepared(
      "INSERT INTO journal_pages (attempt, first_sequence, first_step, steps) "
      "VALUES (?1, ?2, ?3, ?4)");
  insert.Bind(1, attempt);
  insert.Bind(2, first_sequence);
  insert.Bind(3, first_step);
  insert.BindBlob(4, steps);
  return insert.Run();
}

// Turns the oldest rows, a page of them at most, into a page; there must be one. Returns how many.
absl::StatusOr<int64_t> PackOldest(Database& database, int64_t attempt) {
  int64_t first_sequence = 0, first_step = 0, sequence = 0, step = 0, count = 0;
  std::string steps;
  {
    Statement select = database.Prepared(
        "SELECT sequence, last_step FROM journal WHERE attempt = ?1 ORDER BY sequence LIMIT ?2");
    select.Bind(1, attempt);
    select.Bind(2, kJournalPage);
    for (; select.Step(); ++count) {
      if (count == 0) {
        first_sequence = select.Integer(0);
        first_step = select.Integer(1);
      } else {
        AppendNumber(steps, static_cast<uint64_t>(select.Integer(0) - sequence));
        AppendNumber(steps, static_cast<uint64_t>(select.Integer(1) - step));
      }
      sequence = select.Integer(0);
      step = select.Integer(1);
    }
    if (!select.status().ok()) return select.status();
  }
  if (auto status = InsertPage(database, attempt, first_sequence, first_step, steps);
      !status.ok()) {
    return status;
  }
  Statement remove = database.Prepared("DELETE FROM journal WHERE attempt = ?1 AND sequence <= ?2");
  remove.Bind(1, attempt);
  remove.Bind(2, sequence);
  if (absl::Status status = remove.Run(); !status.ok()) return status;
  return count;
}

}  // namespace

absl::StatusOr<Journal> Journal::Restore(Database& database, int64_t attempt) {
  const absl::StatusOr<int64_t> rows = CountRows(database, attempt);
  if (!rows.ok()) return rows.status();
  Journal journal;
  journal.rows_ = *rows;
  return journal;
}

absl::Status Journal::Note(Database& database, int64_t attempt, uint64_t sequence,
                           int64_t last_step) {
  {
    Statement insert =
        database.Prepared("INSERT INTO journal (attempt, sequence, last_step) VALUES (?1, ?2, ?3)");
    insert.Bind(1, attempt);
    insert.Bind(2, static_cast<int64_t>(sequence));
    insert.Bind(3, last_step);
    if (absl::Status status = insert.Run(); !status.ok()) return status;
  }
  if (++rows_ < 2 * kJournalPage) return absl::OkStatus();
  const absl::StatusOr<int64_t> packed = PackOldest(database, attempt);
  if (!packed.ok()) return packed.status();
  rows_ -= *packed;
  return absl::OkStatus();
}

absl::Status PackJournal(Database& database, int64_t attempt) {
  absl::StatusOr<int64_t> rows = CountRows(database, attempt);
  if (!rows.ok()) return rows.status();
  for (int64_t left = *rows; left > 0;) {
    const absl::StatusOr<int64_t> packed = PackOldest(database, attempt);
    if (!packed.ok()) return packed.status();
    left -= *packed;
  }
  return absl::OkStatus();
}

absl::Status PackJournals(Database& database) {
  std::vector<std::pair<int64_t, int64_t>> attempts;  // and their rows
  {
    Statement select = database.Prepared("SELECT attempt, count(*) FROM journal GROUP BY attempt");
    while (select.Step()) attempts.emplace_back(select.Integer(0), select.Integer(1));
    if (!select.status().ok()) return select.status();
  }
  for (auto [attempt, rows] : attempts) {
    while (rows >= 2 * kJournalPage) {
      const absl::StatusOr<int64_t> packed = PackOldest(database, attempt);
      if (!packed.ok()) return packed.status();
      rows -= *packed;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> StepAt(Database& database, int64_t attempt, uint64_t sequence) {
  {
    Statement select = database.Prepared(
        "SELECT last_step FROM journal WHERE attempt = ?1 AND sequence <= ?2 "
        "ORDER BY sequence DESC LIMIT 1");
    select.Bind(1, attempt);
    select.Bind(2, static_cast<int64_t>(sequence));
    if (select.Step()) return select.Integer(0);
    if (!select.status().ok()) return select.status();
  }
  // Pages hold what is older than every row.
  Statement select = database.Prepared(
      "SELECT first_sequence, first_step, steps FROM journal_pages "
      "WHERE attempt = ?1 AND first_sequence <= ?2 ORDER BY first_sequence DESC LIMIT 1");
  select.Bind(1, attempt);
  select.Bind(2, static_cast<int64_t>(sequence));
  if (!select.Step()) {
    if (!select.status().ok()) return select.status();
    return 0;
  }
  auto at = static_cast<uint64_t>(select.Integer(0));
  auto step = static_cast<uint64_t>(select.Integer(1));
  const std::string bytes = select.Blob(2);
  std::string_view left = bytes;
  while (!left.empty()) {
    uint64_t more_sequence = 0, more_steps = 0;
    if (!TakeNumber(left, more_sequence) || !TakeNumber(left, more_steps)) {
      return absl::DataLossError(StrCat("the journal of attempt ", attempt, " is damaged"));
    }
    at += more_sequence;
    if (at > sequence) break;
    step += more_steps;
  }
  return static_cast<int64_t>(step);
}

}  // namespace normlab::storage
