// Comparisons of runs with their peers, as rows: each (run, step) is compared once. Functions run
// inside the caller's transaction.
#ifndef NORMLAB_SERVER_STORAGE_EARLY_STOPS_H_
#define NORMLAB_SERVER_STORAGE_EARLY_STOPS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/storage/sqlite.h"
#include "server/storage/writer.h"

namespace normlab::storage {

struct EarlyStopRow {
  std::string run;
  int64_t step = 0;
  int64_t peers = 0;     // that had come so far
  std::string reason;    // why it is stopped; empty: it went on
  bool pending = false;  // it is to be stopped and has not been told yet
};

// On the writer's thread.
absl::Status InsertEarlyStop(WriteContext& context, const EarlyStopRow& row);
// The run was told, or had ended by itself.
absl::Status SetEarlyStopDone(WriteContext& context, std::string_view run);

// Of one run, by step.
absl::StatusOr<std::vector<EarlyStopRow>> ReadEarlyStops(Database& database, std::string_view run);

// Whether an attempt of the run has a loss at `step`.
absl::StatusOr<bool> HasLossAt(Database& database, std::string_view run, int64_t step);

// Loss at `step` of every run of the experiment that has come so far, by run: of its latest attempt
// that did. Infinite for a run that diverged, wherever that was. NaN where it is not a number.
absl::StatusOr<std::map<std::string, double>> ReadLossesAt(Database& database,
                                                           std::string_view experiment,
                                                           int64_t step);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_EARLY_STOPS_H_
