// Numbered steps from one schema to the next; `PRAGMA user_version` says which were taken.
#ifndef NORMLAB_SERVER_STORAGE_MIGRATIONS_H_
#define NORMLAB_SERVER_STORAGE_MIGRATIONS_H_

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/storage/sqlite.h"

namespace normlab::storage {

// SQL of the steps, the first one makes version 1. From migrations/NNN_*.sql.
const std::vector<std::string_view>& Migrations();

// Takes the missing steps, each in a transaction. FAILED_PRECONDITION when the file is newer than
// this program; then nothing is touched.
absl::Status Migrate(Database& database);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_MIGRATIONS_H_
