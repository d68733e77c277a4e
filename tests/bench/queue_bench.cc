// What deciding costs with 5,000 queued runs: medians in milliseconds of reading them, of a plan
// and of a forecast. Exits with 1 when one is above the bound given.
//
//   queue_bench [BOUND_MS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "server/base/strings.h"
#include "server/scheduler/forecast.h"
#include "server/scheduler/plan.h"
#include "server/storage/queue.h"
#include "tests/fakes/stored_runs.h"

namespace normlab {
namespace {

constexpr int kRuns = 5'000;
constexpr int kUsers = 20;
constexpr int kSlots = 8;
constexpr int kRounds = 21;

double MedianMs(const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < kRounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  std::sort(times.begin(), times.end());
  return times[kRounds / 2];
}

// As a team's queue may be: some wide, some of a class of their own, some held.
scheduler::Snapshot MakeSnapshot(bool known, int free_slots) {
  scheduler::Snapshot snapshot;
  for (int i = 0; i < kSlots; ++i) {
    scheduler::Device device;
    device.id = StrCat("cpu:", i);
    if (i >= free_slots) device.leases = {{.run = StrCat("x", i), .user = "user0"}};
    snapshot.devices.push_back(device);
    if (known) snapshot.holdings[StrCat("x", i)].remaining_seconds = 10.0 + i;
  }
  for (int i = 0; i < kRuns; ++i) {
    scheduler::QueuedRun run = {.id = StrCat("r", 100'000 + i)};
    run.user = StrCat("user", i % kUsers);
    run.priority = i % 50 == 0 ? 1 : i % 7 == 0 ? -1 : 0;
    run.threads = 1 + (i % 10 == 0) + (i % 20 == 0) * 2;
    run.held = i % 100 == 99;
    if (known) run.expected_seconds = 30 + i % 97;
    snapshot.queue.push_back(run);
  }
  return snapshot;
}

void Fill(fakes::StoredRuns& runs) {
  for (int first = 0; first < kRuns; first += 500) {
    const absl::Status status = runs.store().writer().Write([&](storage::WriteContext& context) {
      for (int i = 0; i < 500; ++i) {
        if (auto inserted = storage::InsertRun(context, runs.MakeRun()); !inserted.ok()) {
          return inserted;
        }
      }
      return absl::OkStatus();
    });
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      std::exit(2);
    }
  }
}

int Main(int argc, char** argv) {
  const double bound = argc > 1 ? std::strtod(argv[1], nullptr) : 0;
  double worst = 0;
  const auto report = [&](const char* what, const std::function<void()>& work) {
    const double ms = MedianMs(work);
    worst = std::max(worst, ms);
    std::printf("%-34s %8.2f ms\n", what, ms);
  };
  const scheduler::Snapshot idle = MakeSnapshot(true, kSlots), busy = MakeSnapshot(true, 0);
  const scheduler::Snapshot unknown = MakeSnapshot(false, 0);
  report("plan, all slots free", [&] { scheduler::MakePlan(idle); });
  report("plan, no slot free", [&] { scheduler::MakePlan(busy); });
  report("forecast, ends known", [&] { scheduler::MakeForecast(busy); });
  report("forecast, no end known", [&] { scheduler::MakeForecast(unknown); });
  fakes::StoredRuns runs;
  Fill(runs);
  report("reading the queue", [&] {
    const absl::Status status = runs.store().Read([](storage::Database& database) {
      const auto rows = storage::ReadQueue(database, /*all=*/true, 0);
      if (rows.ok() && rows->size() != kRuns) return absl::DataLossError("runs are missing");
      return rows.status();
    });
    if (!status.ok()) std::exit(2);
  });
  if (bound > 0 && worst > bound) {
    std::printf("above %.1f ms\n", bound);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace normlab

int main(int argc, char** argv) { return normlab::Main(argc, argv); }
