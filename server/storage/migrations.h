// Numbered steps from one schema to the next; `PRAGMA user_version` says which were taken.
#ifndef NORMLAB_SERVER_STORAGE_MIGRATIONS_H_
#define NORMLAB_SERVER_STORAGE_MIGRATIONS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/storage/sqlite.h"

namespace normlab::storage {

// SQL of the steps, the first one makes version 1. From migrations/NNN_*.sql.
const std::vector<std::string_view>& Migrations();

// What SQL cannot say well: runs in the same transaction, after the SQL that makes `version`.
struct ComputedStep {
  int64_t version;
  absl::Status (*run)(Database& database);
};
const std::vector<ComputedStep>& ComputedSteps();

// Takes the missing steps, all of them in one transaction: a file is as it was, or as this program
// needs it. FAILED_PRECONDITION when the file is newer than this program; then nothing is touched.
absl::Status Migrate(Database& database,
                     const std::vector<std::string_view>& migrations = Migrations(),
                     const std::vector<ComputedStep>& computed = ComputedSteps());

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_MIGRATIONS_H_
