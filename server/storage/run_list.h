// The runs that a filter names, in any order, page by page. Functions run inside the caller's
// transaction.
#ifndef NORMLAB_SERVER_STORAGE_RUN_LIST_H_
#define NORMLAB_SERVER_STORAGE_RUN_LIST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "normlab/v1/run.pb.h"
#include "server/domain/filter.h"
#include "server/domain/run_order.h"
#include "server/storage/sqlite.h"

namespace normlab::storage {

// Where a page ended: what its last run has in each field of the order, and its id. The next page
// begins behind that, whatever was added or deleted meanwhile.
struct RunListKey {
  struct Part {
    int64_t rank = 0;  // 0: there is a value; 1: it is NaN; 2: there is none
    std::variant<std::monostate, int64_t, double, std::string> value;
    bool operator==(const Part&) const = default;
  };
  std::vector<Part> parts;
  std::string id;
  bool operator==(const RunListKey&) const = default;
};

struct RunListQuery {
  domain::Filter filter;
  bool archived = true;                 // also those that are archived
  std::string experiment;               // id; empty: any
  std::vector<v1::Run::State> states;   // empty: any
  std::vector<domain::RunOrder> order;  // then by id, newest first
  std::optional<RunListKey> after;
  int limit = 50;
};

struct RunListPage {
  std::vector<std::string> ids;
  std::optional<RunListKey> next;  // none on the last page
};

// Ids of a page. Runs without a value in a field of the order come last there and those with NaN
// before them, rising or falling.
absl::StatusOr<RunListPage> ListRunIds(Database& database, const RunListQuery& query);

// How many runs there are on all pages.
absl::StatusOr<int64_t> CountRuns(Database& database, const RunListQuery& query);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_RUN_LIST_H_
