// Lists of runs, and the filters' SQL against an evaluator that looks at each run by itself.
#include "server/storage/run_list.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/domain/settings.h"
#include "server/domain/spec.h"
#include "server/storage/experiments.h"
#include "server/storage/run_description.h"
#include "tests/fakes/stored_runs.h"
#include "tests/non_finite.h"

namespace normlab::storage {
namespace {

using domain::Filter;
using domain::FilterOperator;
using domain::FilterType;
using fakes::StoredRuns;
using google::protobuf::util::TimeUtil;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

// --- the evaluator: what docs/filters.md says, for one run ---

std::string Lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}
bool Contains(const std::string& text, const std::string& part) {
  return Lower(text).find(Lower(part)) != std::string::npos;
}

bool Compare(FilterOperator op, double a, double b) {
  switch (op) {
    case FilterOperator::kEqual:
    case FilterOperator::kHas:
      return a == b;
    case FilterOperator::kNotEqual:
      return a != b;
    case FilterOperator::kLess:
      return a < b;
    case FilterOperator::kLessEqual:
      return a <= b;
    case FilterOperator::kGreater:
      return a > b;
    case FilterOperator::kGreaterEqual:
      return a >= b;
  }
  return false;
}

struct Sight {
  const v1::Run& run;
  std::string experiment_name;
};

std::optional<double> NumberOf(const v1::Run& run, const domain::FilterField& field) {
  const v1::Summary& summary = run.summary();
  const auto if_has = [](bool has, double value) {
    return has ? std::optional<double>(value) : std::nullopt;
  };
  if (field.is_setting) {
    return std::stod(domain::ValueText(run.effective_spec(), field.name));
  }
  if (field.name == "step") return static_cast<double>(run.progress().step());
  if (field.name == "final_loss") return if_has(summary.has_final_loss(), summary.final_loss());
  if (field.name == "min_loss") return if_has(summary.has_min_loss(), summary.min_loss());
  if (field.name == "validation_loss") {
    return if_has(summary.has_validation_loss(), summary.validation_loss());
  }
  if (field.name == "final_gradient_norm") {
    return if_has(summary.has_final_gradient_norm(), summary.final_gradient_norm());
  }
  if (field.name == "first_bad_step") {
    return if_has(summary.has_first_bad_step(), static_cast<double>(summary.first_bad_step()));
  }
  ADD_FAILURE() << "no number " << field.name;
  return std::nullopt;
}

std::string TextOf(const Sight& sight, const std::string& field) {
  if (field == "id") return sight.run.id();
  if (field == "name") return sight.run.display_name();
  if (field == "user") return sight.run.user();
  if (field == "notes") return sight.run.notes();
  if (field == "device") return sight.run.device();
  if (field == "experiment") return sight.experiment_name;
  return domain::ValueText(sight.run.effective_spec(), field);
}

bool TextHolds(const Sight& sight, const Filter& filter) {
  const std::string& name = filter.field->name;
  const std::string has = TextOf(sight, name);
  if (filter.value.any) return !has.empty();
  bool holds = filter.op == FilterOperator::kHas ? Contains(has, filter.value.text)
                                                 : has == filter.value.text;
  if (name == "experiment") holds |= sight.run.experiment() == filter.value.text;
  return filter.op == FilterOperator::kNotEqual ? !holds : holds;
}

bool TimeHolds(const v1::Run& run, const Filter& filter) {
  const std::string& name = filter.field->name;
  const bool has = name == "created"   ? run.has_create_time()
                   : name == "started" ? run.has_start_time()
                                       : run.has_end_time();
  if (filter.value.any || !has) return has;
  const int64_t time = TimeUtil::TimestampToMicroseconds(name == "created"   ? run.create_time()
                                                         : name == "started" ? run.start_time()
                                                                             : run.end_time());
  const bool within = time >= filter.value.first && time <= filter.value.last;
  switch (filter.op) {
    case FilterOperator::kNotEqual:
      return !within;
    case FilterOperator::kLess:
      return time < filter.value.first;
    case FilterOperator::kLessEqual:
      return time <= filter.value.last;
    case FilterOperator::kGreater:
      return time > filter.value.last;
    case FilterOperator::kGreaterEqual:
      return time >= filter.value.first;
    default:
      return within;
  }
}

bool LabelsHold(const v1::Run& run, const Filter& filter) {
  if (filter.value.any) return run.labels_size() > 0;
  const bool has =
      std::find(run.labels().begin(), run.labels().end(), filter.value.text) != run.labels().end();
  return filter.op == FilterOperator::kNotEqual ? !has : has;
}

bool ComparisonHolds(const Sight& sight, const Filter& filter) {
  const v1::Run& run = sight.run;
  switch (filter.field->type) {
    case FilterType::kText:
      return TextHolds(sight, filter);
    case FilterType::kLabels:
      return LabelsHold(run, filter);
    case FilterType::kTime:
      return TimeHolds(run, filter);
    case FilterType::kSwitch: {
      const bool flag = filter.field->name == "pinned"     ? run.pinned()
                        : filter.field->name == "archived" ? run.archived()
                                                           : run.effective_spec().causal();
      return filter.value.any ||
             (flag == filter.value.flag) == (filter.op == FilterOperator::kEqual);
    }
    case FilterType::kState:
      return filter.value.any ||
             (run.state() == filter.value.state) == (filter.op == FilterOperator::kEqual);
    case FilterType::kNumber:
      break;
  }
  const std::optional<double> has = NumberOf(run, *filter.field);
  if (filter.value.any || !has) return has.has_value();
  if (std::isnan(filter.value.number)) {
    return std::isnan(*has) == (filter.op == FilterOperator::kEqual);
  }
  return Compare(filter.op, *has, filter.value.number);
}

bool Holds(const Sight& sight, const Filter& filter) {
  const auto holds = [&sight](const Filter& term) { return Holds(sight, term); };
  switch (filter.kind) {
    case Filter::Kind::kEverything:
      return true;
    case Filter::Kind::kAnd:
      return std::all_of(filter.terms.begin(), filter.terms.end(), holds);
    case Filter::Kind::kOr:
      return std::any_of(filter.terms.begin(), filter.terms.end(), holds);
    case Filter::Kind::kNot:
      return !holds(filter.terms[0]);
    case Filter::Kind::kComparison:
      return ComparisonHolds(sight, filter);
    case Filter::Kind::kSearch:
      break;
  }
  const std::string& text = filter.value.text;
  std::string upper = text;
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return Contains(sight.run.display_name(), text) || Contains(sight.run.notes(), text) ||
         sight.run.id().starts_with(upper) ||
         std::any_of(sight.run.labels().begin(), sight.run.labels().end(),
                     [&](const std::string& label) { return Contains(label, text); });
}

// --- a store of assorted runs ---

const std::vector<std::string>& Names() {
  static const auto* const kNames = new std::vector<std::string>{
      "Pre-Norm", "post norm", "=1+1", "a\"b", "É", "it's", "100%_x", "<img onerror=x>", "../../x"};
  return *kNames;
}

class RunListTest : public ::testing::Test {
 protected:
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[random_() % from.size()];
  }

  void AddExperiments() {
    for (const char* name : {"sweep", "Pre-Norm"}) {
      v1::Experiment experiment;
      experiment.set_id(ids_.Next(1));
      experiment.set_display_name(name);
      experiments_.push_back(experiment);
      ASSERT_TRUE(
          Write([&](WriteContext& context) { return InsertExperiment(context, experiment); }));
    }
  }

  bool Write(const Writer::Work& work) { return runs_.store().writer().Write(work).ok(); }

  std::string AddRun() {
    v1::Run run = runs_.MakeRun(Pick<std::string>({"auto", "cpu:0"}), Pick<int64_t>({5, 180}));
    run.set_display_name(Pick(Names()));
    run.set_user(Pick<std::string>({"lab1", "lab2"}));
    run.mutable_spec()->set_layers(Pick<int64_t>({2, 6, 12}));
    run.mutable_spec()->set_learning_rate(Pick<double>({1e-3, 2e-3, 0.1}));
    run.mutable_spec()->set_placement(Pick<std::string>({"pre", "post"}));
    run.mutable_spec()->set_seed(Pick<int64_t>({0, 9007199254740993}));
    *run.mutable_effective_spec() = domain::EffectiveSpec(run.spec());
    if (random_() % 2 == 0) run.set_experiment(Pick(experiments_).id());
    RunDescription words;
    words.labels.emplace();
    for (const char* label : {"a", "best, of", "É"}) {
      if (random_() % 3 == 0) words.labels->push_back(label);
    }
    words.notes = Pick<std::string>({"", "two\nlines", "see a\"b"});
    words.pinned = random_() % 4 == 0;
    words.archived = random_() % 4 == 0;
    EXPECT_TRUE(Write([&](WriteContext& context) {
      const absl::Status status = InsertRun(context, run);
      return status.ok() ? DescribeRun(context, run.id(), words) : status;
    }));
    Train(run.id());
    return run.id();
  }

  // Some points, or none, and some state.
  void Train(const std::string& run) {
    if (random_() % 4 == 0) return;
    runs_.clock().Advance(std::chrono::hours(7));
    const AttemptRow attempt = runs_.StartAttempt(run);
    std::vector<std::string> records = {
        fakes::SeriesRecord({"loss", "gradient_norm", "validation_loss"})};
    for (int64_t step = 1; step <= Pick<int64_t>({1, 2, 3}); ++step) {
      records.push_back(fakes::StepRecord(
          step, {Pick<double>({0.05, 0.5, 2.0, kNan, kInfinity}),
                 Pick<double>({0.5, kNan, kInfinity}), Pick<double>({0.5, kNan, -kInfinity})}));
    }
    EXPECT_TRUE(runs_.Append(attempt.id, 1, records).ok());
    runs_.SetState(run, Pick<v1::Run::State>({v1::Run::STATE_SUCCEEDED, v1::Run::STATE_FAILED,
                                              v1::Run::STATE_PAUSING, v1::Run::STATE_DIVERGED}));
  }

  std::vector<std::string> List(const RunListQuery& query) {
    std::vector<std::string> ids;
    const absl::Status status = runs_.store().Read([&](Database& database) {
      const auto page = ListRunIds(database, query);
      if (page.ok()) ids = page->ids;
      next_ = page.ok() ? page->next : std::nullopt;
      return page.status();
    });
    EXPECT_TRUE(status.ok()) << status;
    return ids;
  }
  std::vector<std::string> List(const std::string& filter, const std::string& order = "") {
    const auto parsed = domain::ParseFilter(filter);
    const auto orders = domain::ParseRunOrder(order);
    EXPECT_TRUE(parsed.ok()) << filter << parsed.status();
    EXPECT_TRUE(orders.ok()) << order;
    if (!parsed.ok()) return {};
    RunListQuery query;
    query.filter = *parsed;
    query.order = *orders;
    query.limit = 1000;
    return List(query);
  }
  int64_t Count(const RunListQuery& query) {
    int64_t count = -1;
    EXPECT_TRUE(runs_.store()
                    .Read([&](Database& database) {
                      const auto counted = CountRuns(database, query);
                      if (counted.ok()) count = *counted;
                      return counted.status();
                    })
                    .ok());
    return count;
  }

  StoredRuns runs_;
  UlidGenerator ids_;
  std::vector<v1::Experiment> experiments_;
  std::mt19937 random_{20261130};
  std::optional<RunListKey> next_;
};

// A random filter as text, by the grammar.
class RandomFilter {
 public:
  RandomFilter(std::mt19937& random, std::vector<std::string> ids)
      : random_(random), ids_(std::move(ids)) {}

  std::string Make(int depth = 3) {
    switch (random_() % (depth > 0 ? 9 : 4)) {
      case 4:
      case 5:
        return Make(depth - 1) + " " + Make(depth - 1);
      case 6:
        return "(" + Make(depth - 1) + ") OR (" + Make(depth - 1) + ")";
      case 7:
        return "NOT (" + Make(depth - 1) + ")";
      case 8:
        return "-" + Leaf();
      default:
        return Leaf();
    }
  }

 private:
  std::string Pick(const std::vector<std::string>& from) { return from[random_() % from.size()]; }
  static std::string Quoted(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
    return quoted + "\"";
  }
  std::string Leaf() {
    const std::string any = Pick({"=", "!=", "<", "<=", ">", ">="});
    const std::string text = Pick({"=", "!=", ":"});
    switch (random_() % 8) {
      case 0:
        return Pick({"loss", "gradient_norm", "min_loss", "validation_loss"}) + any +
               Pick({"0.05", "0.5", "2", "Infinity", "-inf", "-1e9"});
      case 1:
        return Pick({"loss", "gradient_norm", "validation_loss"}) +
               Pick({"=NaN", "!=NaN", ":*", ":2"});
      case 2:
        return Pick({"layers", "step", "steps", "learning_rate", "seed", "first_bad_step"}) + any +
               Pick({"2", "6", "1e-3", "0.1", "180", "9007199254740993"});
      case 3:
        return Pick({"name", "notes", "label", "placement", "user", "experiment", "device"}) +
               text +
               Quoted(Pick({"Pre-Norm", "pre", "PRE", "É", "é", "lab1", "a", "best, of", "", "100%",
                            "_", "'", "a\"b", "sweep", "cpu:0"}));
      case 4:
        return "state" + Pick({"=", "!="}) + Pick({"QUEUED", "succeeded", "PAUSING"});
      case 5:
        return Pick({"pinned=true", "archived=false", "pinned!=true", "causal=true", "ended:*",
                     "notes:*", "label:*", "experiment:*", "started:*"});
      case 6:
        return Pick({"created", "ended", "started"}) + any +
               Pick({"2026-11-30", "2026-11-29", "2026-12-02T07:00:00Z", "1970-01-01"});
      default:
        return random_() % 3 == 0 ? Pick(ids_).substr(0, 20 + random_() % 7)
                                  : Quoted(Pick({"norm", "É", "lines", "BEST", "=1+1", "%", ""}));
    }
  }

  std::mt19937& random_;
  const std::vector<std::string> ids_;
};

TEST_F(RunListTest, RandomFiltersFindWhatASlowEvaluatorFinds) {
  AddExperiments();
  std::vector<std::string> ids;
  for (int i = 0; i < 120; ++i) ids.push_back(AddRun());
  std::vector<v1::Run> all;
  for (const std::string& id : ids) all.push_back(runs_.Read(id));
  RandomFilter filters(random_, ids);
  int found = 0, none = 0;
  for (int i = 0; i < 1500; ++i) {
    const std::string text = filters.Make();
    const auto filter = domain::ParseFilter(text);
    ASSERT_TRUE(filter.ok()) << text << ": " << filter.status();
    std::vector<std::string> wanted;
    for (auto run = all.rbegin(); run != all.rend(); ++run) {
      std::string experiment;
      for (const v1::Experiment& one : experiments_) {
        if (one.id() == run->experiment()) experiment = one.display_name();
      }
      if (Holds({*run, experiment}, *filter)) wanted.push_back(run->id());
    }
    RunListQuery query;
    query.filter = *filter;
    query.limit = 1000;
    ASSERT_EQ(List(query), wanted) << text;
    ASSERT_EQ(Count(query), static_cast<int64_t>(wanted.size())) << text;
    (wanted.empty() ? none : found) += 1;
  }
  EXPECT_GT(found, 500);
  EXPECT_GT(none, 50);
}

TEST_F(RunListTest, PagesOfAnyOrderHoldEachRunOnceWhileRunsAreAdded) {
  AddExperiments();
  std::vector<std::string> ids;
  for (int i = 0; i < 40; ++i) ids.push_back(AddRun());
  std::sort(ids.begin(), ids.end());
  for (const char* order : {"", "final_loss", "final_loss desc", "layers, min_loss desc",
                            "name desc, loss", "experiment", "validation_loss desc, seed", "ended",
                            "state, id", "run_seconds desc", "pinned desc"}) {
    RunListQuery query;
    query.order = *domain::ParseRunOrder(order);
    query.limit = 7;
    std::vector<std::string> seen, added;
    do {
      for (const std::string& id : List(query)) seen.push_back(id);
      query.after = next_;
      added.push_back(runs_.AddRun());
    } while (next_);
    // Those that came meanwhile may be there or not; the others are, once.
    std::vector<std::string> old;
    for (const std::string& id : seen) {
      if (std::binary_search(ids.begin(), ids.end(), id)) old.push_back(id);
    }
    std::sort(old.begin(), old.end());
    ASSERT_EQ(old, ids) << order;
    std::sort(seen.begin(), seen.end());
    ASSERT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end()) << order;
    ids.insert(ids.end(), added.begin(), added.end());  // the next order begins with more
    std::sort(ids.begin(), ids.end());
  }
}

TEST_F(RunListTest, OrdersByValueWithNanAndMissingLast) {
  const auto run = [this](std::optional<double> loss) {
    const std::string id = runs_.AddRun();
    if (!loss) return id;
    const AttemptRow attempt = runs_.StartAttempt(id);
    EXPECT_TRUE(
        runs_.Append(attempt.id, 1, {fakes::SeriesRecord({"loss"}), fakes::StepRecord(1, {*loss})})
            .ok());
    return id;
  };
  const std::string missing = run(std::nullopt), nan = run(kNan), two = run(2), one = run(1),
                    infinite = run(kInfinity), negative = run(-kInfinity), also_one = run(1);
  EXPECT_THAT(List("", "loss"), ElementsAre(negative, also_one, one, two, infinite, nan, missing));
  EXPECT_THAT(List("", "loss desc"),
              ElementsAre(infinite, two, also_one, one, negative, nan, missing));
  EXPECT_THAT(List("", "loss, id"),
              ElementsAre(negative, one, also_one, two, infinite, nan, missing));
  EXPECT_THAT(List("loss=NaN"), ElementsAre(nan));
  EXPECT_THAT(List("NOT loss:*"), ElementsAre(missing));
  EXPECT_THAT(List("loss<Infinity", "loss"), ElementsAre(negative, also_one, one, two));
}

TEST_F(RunListTest, TextsOfSqlAreTexts) {
  const std::string id = runs_.AddRun();
  RunDescription words;
  words.display_name = "x'); DROP TABLE runs; --";
  ASSERT_TRUE(Write([&](WriteContext& context) { return DescribeRun(context, id, words); }));
  EXPECT_THAT(List("name=\"x'); DROP TABLE runs; --\""), ElementsAre(id));
  EXPECT_THAT(List("\"'; DELETE FROM runs; --\""), IsEmpty());
  EXPECT_THAT(List("name:\"%\""), IsEmpty());
  EXPECT_THAT(List("label=\"'\" OR name:drop"), ElementsAre(id));
}

TEST_F(RunListTest, TheLongestFilterRuns) {
  const std::string id = runs_.AddRun();
  std::string text;
  for (int i = 0; i < domain::kMostTerms; ++i) text += "-label=x" + std::to_string(i) + " ";
  EXPECT_THAT(List(text), ElementsAre(id));
  std::string any = "layers=99";
  for (int i = 1; i < domain::kMostTerms; ++i) any += " OR seed=" + std::to_string(100 + i);
  EXPECT_THAT(List(any), IsEmpty());
  static_assert(domain::kDeepestFilter % 2 == 0, "an odd number of NOTs fits");
  EXPECT_THAT(List(std::string(static_cast<size_t>(domain::kDeepestFilter) - 1, '-') + "label=x"),
              ElementsAre(id));
  std::string deep, end;
  for (int depth = 1; depth + 3 <= domain::kDeepestFilter; depth += 3) {
    deep += "NOT (name:a OR (label=b ";
    end += "))";
  }
  EXPECT_THAT(List(deep + "loss>1" + end), IsEmpty());  // its name has an a
}

}  // namespace
}  // namespace normlab::storage
