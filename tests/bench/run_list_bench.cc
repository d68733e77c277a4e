// A page of 50 runs of 10,000, by several filters and orders: medians in milliseconds of everything
// between the question and the runs as messages. Exits with 1 when one is above the bound given.
//
//   run_list_bench [BOUND_MS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "server/domain/spec.h"
#include "server/storage/run_description.h"
#include "server/storage/run_list.h"
#include "tests/fakes/stored_runs.h"

namespace normlab {
namespace {

constexpr int kRuns = 10'000;
constexpr int kBatch = 500;
constexpr int kPage = 50;
constexpr int kRounds = 21;

struct Question {
  const char* name;
  const char* filter;
  const char* order;
};
constexpr Question kQuestions[] = {
    {"newest", "", ""},
    {"state", "state=SUCCEEDED", ""},
    {"setting", "layers>=12", ""},
    {"two settings", "layers>=12 learning_rate<1e-3", ""},
    {"label", "label=best", ""},
    {"metric", "final_loss<0.1", ""},
    {"NaN", "loss=NaN", ""},
    {"free text", "\"warm 76\"", ""},
    {"of everything", "state=SUCCEEDED layers=6 loss<0.5 -label=draft warm", "final_loss"},
    {"by loss", "", "final_loss"},
    {"by a setting", "", "learning_rate desc, final_loss"},
};

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(2);
}

// Run number `i`: settings, state, loss and labels spread so that each filter names some of them.
absl::Status AddRun(storage::WriteContext& context, v1::Run run, int i) {
  run.set_display_name("run " + std::to_string(i) + (i % 2 == 0 ? " warm " : " cold ") +
                       std::to_string(i % 100));
  run.mutable_spec()->set_layers(i % 3 == 0 ? 2 : i % 3 == 1 ? 6 : 12);
  run.mutable_spec()->set_learning_rate(1e-4 * (1 + i % 40));
  *run.mutable_effective_spec() = domain::EffectiveSpec(run.spec());
  if (absl::Status status = storage::InsertRun(context, run); !status.ok()) return status;
  storage::RunDescription words;
  words.labels.emplace();
  if (i % 20 == 0) words.labels->push_back("best");
  if (i % 7 == 0) words.labels->push_back("draft");
  if (absl::Status status = storage::DescribeRun(context, run.id(), words); !status.ok()) {
    return status;
  }
  storage::Statement update = context.database.Prepared(
      "UPDATE runs SET state = ?2, final_loss = ?3, nan_numbers = ?4 WHERE id = ?1");
  update.Bind(1, run.id());
  update.Bind(2, int64_t{i % 10 == 0 ? v1::Run::STATE_FAILED : v1::Run::STATE_SUCCEEDED});
  const bool nan = i % 50 == 0;
  update.Bind(3, nan ? std::nullopt : std::optional<double>(1e-4 * ((i * 7919LL) % 20'000)));
  update.Bind(4, nan ? storage::kNanFinalLoss : 0);
  return update.Run();
}

void Fill(fakes::StoredRuns& runs) {
  for (int begin = 0; begin < kRuns; begin += kBatch) {
    Require(runs.store().writer().Write([&](storage::WriteContext& context) -> absl::Status {
      for (int i = begin; i < begin + kBatch; ++i) {
        if (absl::Status status = AddRun(context, runs.MakeRun(), i); !status.ok()) return status;
      }
      return absl::OkStatus();
    }));
    runs.published().clear();
  }
}

// One page and the number of all; what ListRuns does.
absl::Status ReadPage(storage::Database& database, const storage::RunListQuery& query,
                      int64_t& total) {
  const auto page = storage::ListRunIds(database, query);
  if (!page.ok()) return page.status();
  const auto count = storage::CountRuns(database, query);
  if (!count.ok()) return count.status();
  total = *count;
  for (const std::string& id : page->ids) {
    if (auto run = storage::ReadRun(database, id).status(); !run.ok()) return run;
  }
  return absl::OkStatus();
}

double MedianMillis(fakes::StoredRuns& runs, const Question& question, int64_t& total) {
  std::vector<double> millis;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    storage::RunListQuery query;
    query.filter = *domain::ParseFilter(question.filter);
    query.order = *domain::ParseRunOrder(question.order);
    query.archived = false;
    query.limit = kPage;
    Require(runs.store().Read(
        [&](storage::Database& database) { return ReadPage(database, query, total); }));
    millis.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  std::nth_element(millis.begin(), millis.begin() + kRounds / 2, millis.end());
  return millis[kRounds / 2];
}

int Main(double bound) {
  fakes::StoredRuns runs;
  Fill(runs);
  std::printf("| page of %d of %d runs | runs found | median, ms |\n| --- | ---: | ---: |\n", kPage,
              kRuns);
  double worst = 0;
  for (const Question& question : kQuestions) {
    int64_t total = 0;
    const double millis = MedianMillis(runs, question, total);
    worst = std::max(worst, millis);
    std::printf("| %s | %lld | %.1f |\n", question.name, static_cast<long long>(total), millis);
  }
  if (bound <= 0 || worst <= bound) return 0;
  std::fprintf(stderr, "the slowest took %.1f ms, above %.1f ms\n", worst, bound);
  return 1;
}

}  // namespace
}  // namespace normlab

int main(int argc, char** argv) { return normlab::Main(argc > 1 ? std::atof(argv[1]) : 0); }
