#include "server/storage/migrations.h"

#include <cstdint>
#include <string>

#include "server/base/strings.h"
#include "server/storage/journal.h"
#include "server/storage/levels.h"
#include "server/storage/run_settings.h"

namespace normlab::storage {
namespace {

absl::Status MakeVersion(Database& database, int64_t version, std::string_view sql,
                         const std::vector<ComputedStep>& computed) {
  if (absl::Status status = database.Execute(std::string(sql)); !status.ok()) return status;
  for (const ComputedStep& step : computed) {
    if (step.version != version) continue;
    if (absl::Status status = step.run(database); !status.ok()) return status;
  }
  return database.Execute(StrCat("PRAGMA user_version = ", version));
}

}  // namespace

const std::vector<ComputedStep>& ComputedSteps() {
  static const auto* const kSteps = new std::vector<ComputedStep>{
      {3, BuildLevels},
      {3, PackJournals},
      {4, FillRunSettings},
  };
  return *kSteps;
}

absl::Status Migrate(Database& database, const std::vector<std::string_view>& migrations,
                     const std::vector<ComputedStep>& computed) {
  const absl::StatusOr<int64_t> found = database.PragmaInteger("user_version");
  if (!found.ok()) return found.status();
  const int64_t known = static_cast<int64_t>(migrations.size());
  if (*found == known) return absl::OkStatus();
  if (*found > known) {
    return absl::FailedPreconditionError(StrCat("the database has schema ", *found,
                                                " and this normlabd knows schemas up to ", known,
                                                "; run the newer normlabd"));
  }
  Transaction transaction(database, Transaction::Kind::kWrite);
  if (!transaction.status().ok()) return transaction.status();
  for (int64_t version = *found + 1; version <= known; ++version) {
    const absl::Status status =
        MakeVersion(database, version, migrations[static_cast<size_t>(version) - 1], computed);
    if (!status.ok()) return status;
  }
  return transaction.Commit();
}

}  // namespace normlab::storage
