// The settings of runs as rows (run_settings), by which lists filter and order: reading JSON of ten
// thousand runs for each page would take too long. Functions run inside the caller's transaction.
#ifndef NORMLAB_SERVER_STORAGE_RUN_SETTINGS_H_
#define NORMLAB_SERVER_STORAGE_RUN_SETTINGS_H_

#include <string_view>

#include "absl/status/status.h"
#include "normlab/v1/run_spec.pb.h"
#include "server/storage/sqlite.h"

namespace normlab::storage {

// One row for each setting that `effective` has: its declared name, and numbers as numbers,
// switches as 0 or 1, texts as texts.
absl::Status InsertRunSettings(Database& database, std::string_view run,
                               const v1::RunSpec& effective);

// Takes them back.
absl::Status DeleteRunSettings(Database& database, std::string_view run);

// The rows of every run, from run_specs: the part of a migration that SQL cannot do.
absl::Status FillRunSettings(Database& database);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_RUN_SETTINGS_H_
