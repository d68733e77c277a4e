// Filters and orders of run lists: refused in well-formed words, or a query that SQLite answers, whose
// pages hold each run that fits once, and whose opposite holds all the others.
#include <unistd.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/domain/filter.h"
#include "server/domain/run_order.h"
#include "server/domain/utf8.h"
#include "server/storage/run_list.h"
#include "tests/fakes/stored_runs.h"
#include "tests/fuzz/property.h"

namespace {

using normlab::domain::Filter;
using normlab::fakes::StoredRuns;
using normlab::storage::Database;
using normlab::storage::RunListPage;
using normlab::storage::RunListQuery;
using normlab::v1::Run;

constexpr int64_t kRuns = 12;

// Runs that differ in everything a filter may ask for.
std::unique_ptr<StoredRuns> MakeRuns() {
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
  auto runs = std::make_unique<StoredRuns>();
  const double losses[] = {0.5, 4, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()};
  const char* names[] = {"a run", "\"quoted\", 50%_*", "Ünïcödé 😀", "a' OR 1=1 --"};
  for (int64_t i = 0; i < kRuns; ++i) {
    Run run = runs->MakeRun("auto", 100 + i);
    run.set_display_name(names[i % 4]);
    run.set_user(i % 3 == 0 ? "lab1" : "lab2");
    run.mutable_spec()->set_layers(1 + i % 5);
    *run.mutable_effective_spec() = normlab::domain::EffectiveSpec(run.spec());
    REQUIRE(runs->store()
                .writer()
                .Write([&](normlab::storage::WriteContext& context) {
                  return normlab::storage::InsertRun(context, run);
                })
                .ok());
    if (i % 2 == 0) continue;
    const normlab::storage::AttemptRow attempt = runs->StartAttempt(run.id());
    REQUIRE(runs->Append(attempt.id, 1,
                         {normlab::fakes::SeriesRecord({"loss", "gradient_norm"}),
                          normlab::fakes::StepRecord(1, {losses[i / 2 % 4], 1.5})})
                .ok());
  }
  return runs;
}

// All ids in the order of their pages.
std::vector<std::string> ReadPages(Database& database, RunListQuery query) {
  std::vector<std::string> ids;
  do {
    const absl::StatusOr<RunListPage> page = normlab::storage::ListRunIds(database, query);
    REQUIRE(page.ok());
    REQUIRE(page->ids.size() <= static_cast<size_t>(query.limit));
    ids.insert(ids.end(), page->ids.begin(), page->ids.end());
    query.after = page->next;
    REQUIRE(ids.size() <= kRuns);
  } while (query.after);
  return ids;
}

void CheckQuery(StoredRuns& runs, RunListQuery query) {
  const absl::Status status = runs.store().Read([&](Database& database) {
    const std::vector<std::string> ids = ReadPages(database, query);
    const std::set<std::string> fitting(ids.begin(), ids.end());
    REQUIRE(fitting.size() == ids.size());
    const absl::StatusOr<int64_t> count = normlab::storage::CountRuns(database, query);
    REQUIRE(count.ok() && *count == static_cast<int64_t>(ids.size()));

    RunListQuery opposite = query;
    opposite.filter = Filter();
    opposite.filter.kind = Filter::Kind::kNot;
    opposite.filter.terms.push_back(query.filter);
    for (const std::string& id : ReadPages(database, opposite)) REQUIRE(!fitting.contains(id));
    const absl::StatusOr<int64_t> others = normlab::storage::CountRuns(database, opposite);
    REQUIRE(others.ok() && *count + *others == kRuns);
    return absl::OkStatus();
  });
  REQUIRE(status.ok());
}

void RequireWords(const absl::Status& status, std::string_view text) {
  normlab::fuzz::RequireClientError(status);
  const std::string_view said(status.message().data(), status.message().size());
  if (normlab::domain::IsUtf8(text)) REQUIRE(normlab::domain::IsUtf8(said));
  REQUIRE(said.size() < 10'000);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* runs = new std::unique_ptr<StoredRuns>(MakeRuns());
  static const bool closes = std::atexit([] { runs->reset(); }) == 0;
  REQUIRE(closes);
  normlab::fuzz::Input input(data, size);
  const std::string_view order_text = input.Line();
  const std::string_view filter_text = input.Rest();
  const auto order = normlab::domain::ParseRunOrder(order_text);
  const absl::StatusOr<Filter> filter = normlab::domain::ParseFilter(filter_text);
  RequireWords(order.status(), order_text);
  RequireWords(filter.status(), filter_text);
  if (!filter.ok()) return 0;
  RunListQuery query;
  query.filter = *filter;
  if (order.ok()) query.order = *order;
  query.limit = 5;
  // "Everything" has no opposite to be asked for.
  if (query.filter.kind != Filter::Kind::kEverything) CheckQuery(**runs, query);
  return 0;
}
