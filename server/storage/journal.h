// The journal: up to which step an attempt had come when a write was done. Who comes back with the
// sequence of a write goes on behind that step, so the answer must be exact for every sequence that
// was ever given out.
//
// An attempt's newest entries are rows of `journal`; older ones are packed, 256 to a row of
// `journal_pages`: the first entry in columns, and for each that follows by how much sequence and
// step grew, as variable-length integers. That is about 3 bytes an entry instead of 14.
//
// Functions run inside the caller's transaction.
#ifndef NORMLAB_SERVER_STORAGE_JOURNAL_H_
#define NORMLAB_SERVER_STORAGE_JOURNAL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/storage/sqlite.h"

namespace normlab::storage {

inline constexpr int64_t kJournalPage = 256;  // entries

// The journal of one attempt that is being written.
class Journal {
 public:
  static absl::StatusOr<Journal> Restore(Database& database, int64_t attempt);

  // Notes that `attempt` came to `last_step` by the write `sequence`, which is its latest one, and
  // packs the oldest rows once there are two pages of them.
  absl::Status Note(Database& database, int64_t attempt, uint64_t sequence, int64_t last_step);

 private:
  int64_t rows_ = 0;
};

// Packs everything: the attempt has ended.
absl::Status PackJournal(Database& database, int64_t attempt);

// Packs the journals of all attempts, but for the newest entries of each: for a database whose
// journals were never packed.
absl::Status PackJournals(Database& database);

// The last step that an attempt had when the write `sequence` was done; 0 when it had none.
absl::StatusOr<int64_t> StepAt(Database& database, int64_t attempt, uint64_t sequence);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_JOURNAL_H_
