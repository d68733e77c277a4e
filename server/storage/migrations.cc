#include "server/storage/migrations.h"

#include <cstdint>
#include <string>

#include "server/base/strings.h"

namespace normlab::storage {

absl::Status Migrate(Database& database) {
  const absl::StatusOr<int64_t> found = database.PragmaInteger("user_version");
  if (!found.ok()) return found.status();
  const int64_t known = static_cast<int64_t>(Migrations().size());
  if (*found > known) {
    return absl::FailedPreconditionError(
        StrCat("the database has schema ", *found, " and this normlabd knows schemas up to ",
                     known, "; run the newer normlabd"));
  }
  for (int64_t version = *found; version < known; ++version) {
    Transaction transaction(database, Transaction::Kind::kWrite);
    if (!transaction.status().ok()) return transaction.status();
    absl::Status status =
        database.Execute(std::string(Migrations()[static_cast<size_t>(version)]));
    if (!status.ok()) return status;
    status = database.Execute(StrCat("PRAGMA user_version = ", version + 1));
    if (!status.ok()) return status;
    if (status = transaction.Commit(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace normlab::storage
