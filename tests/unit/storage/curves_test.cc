#include "server/storage/curves.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/storage/history.h"
#include "tests/fakes/stored_runs.h"
#include "tests/non_finite.h"

namespace normlab::storage {
namespace {

using fakes::SeriesRecord;
using fakes::StepRecord;
using fakes::StoredRuns;
using ::testing::ElementsAre;

using Points = std::vector<domain::Point>;

// A curve and what is known of it.
struct Drawn {
  domain::Curve curve;
  domain::Block whole;
  int64_t points = 0;
};

bool SameValue(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void ExpectSame(const domain::Curve& found, const domain::Curve& expected) {
  ASSERT_EQ(found.steps, expected.steps);
  for (size_t i = 0; i < found.values.size(); ++i) {
    ASSERT_TRUE(SameValue(found.values[i], expected.values[i])) << "step " << found.steps[i];
  }
}

// The slow, obvious way: all points of one attempt; buckets by the numbers of points.
domain::Curve DrawSlowly(const Points& points, StepRange range, int64_t max_points) {
  std::vector<std::pair<int64_t, domain::Point>> chosen;  // with their numbers
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i].step >= range.first && points[i].step <= range.last) {
      chosen.emplace_back(static_cast<int64_t>(i), points[i]);
    }
  }
  domain::Curve curve;
  const auto count = static_cast<int64_t>(chosen.size());
  int64_t size = 1;
  if (max_points > 0 && count > max_points) {
    while (chosen.back().first / size - chosen.front().first / size + 1 > max_points / 5) size *= 2;
  }
  for (size_t begin = 0; begin < chosen.size();) {
    size_t end = begin;
    while (end < chosen.size() && chosen[end].first / size == chosen[begin].first / size) ++end;
    std::vector<size_t> kept = {begin, end - 1};
    const auto best = [&](auto wanted, auto better) {
      std::optional<size_t> found;
      for (size_t i = begin; i < end; ++i) {
        const double value = chosen[i].second.value;
        if (wanted(value) && (!found || better(value, chosen[*found].second.value))) found = i;
      }
      if (found) kept.push_back(*found);
    };
    best([](double v) { return std::isfinite(v); }, std::less<double>());
    best([](double v) { return std::isfinite(v); }, std::greater<double>());
    best([](double v) { return !std::isfinite(v); }, [](double, double) { return false; });
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    for (const size_t i : kept) {
      curve.steps.push_back(chosen[i].second.step);
      curve.values.push_back(chosen[i].second.value);
    }
    begin = end;
  }
  return curve;
}

class CurvesTest : public ::testing::Test {
 protected:
  CurvesTest() : run_(runs_.AddRun()) {}

  void StartAttempt(int64_t resumed_from = 0) {
    attempt_ = runs_.StartAttempt(run_, resumed_from);
    record_ = 1;
    step_ = resumed_from;
    all_.emplace_back();
    ASSERT_TRUE(runs_.Append(attempt_.id, record_++, {SeriesRecord({"loss"})}).ok());
  }

  double SomeValue() {
    const uint32_t choice = random_() % 300;
    if (choice < 3) return choice == 0 ? kNan : choice == 1 ? kInfinity : -kInfinity;
    return std::floor(std::ldexp(static_cast<double>(random_()), -22)) / 8;  // many are equal
  }

  void Append(int64_t count, int64_t gap = 1) {
    std::vector<std::string> records;
    for (int64_t i = 0; i < count; ++i) {
      step_ += 1 + static_cast<int64_t>(random_() % gap);
      all_.back().push_back({step_, SomeValue()});
      records.push_back(StepRecord(step_, {all_.back().back().value}));
    }
    ASSERT_TRUE(runs_.Append(attempt_.id, record_, records).ok());
    record_ += records.size();
  }

  Drawn Draw(const CurveQuery& query, int64_t rows_a_read = 1'000'000) {
    Drawn drawn;
    const absl::Status status = runs_.store().Read([&](Database& database) -> absl::Status {
      const auto segments = SegmentsOf(database, run_, query);
      if (!segments.ok()) return segments.status();
      auto reader = CurveReader::Plan(database, *segments, "loss", query.max_points);
      if (!reader.ok()) return reader.status();
      for (bool complete = false; !complete;) {
        int64_t rows = rows_a_read;
        const auto read = reader->Read(database, rows);
        if (!read.ok()) return read.status();
        complete = *read;
        rows_read_ += rows_a_read - rows;
      }
      drawn = {reader->drawn(), reader->whole(), reader->points()};
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    return drawn;
  }

  std::mt19937 random_{17};
  StoredRuns runs_;
  const std::string run_;
  AttemptRow attempt_;
  uint64_t record_ = 1;
  int64_t step_ = 0;
  std::vector<Points> all_;  // by attempt
  int64_t rows_read_ = 0;
};

TEST_F(CurvesTest, AnyRangeIsWhatTheSlowWayDraws) {
  StartAttempt();
  int64_t stored = 0;
  for (const int64_t length : {1, 62, 1, 1, 63, 1, 447, 511, 2500, 500, 9, 20'000, 4096}) {
    Append(length, 4);
    stored += length;
    for (int round = 0; round < 60; ++round) {
      const int64_t first = static_cast<int64_t>(random_() % (step_ + 10));
      const StepRange range = {first, first + static_cast<int64_t>(random_() % (step_ + 10))};
      const int64_t max_points = random_() % 8 == 0 ? 0 : 5 + static_cast<int64_t>(random_() % 900);
      const Drawn drawn = Draw({range, 0, max_points}, 1 + random_() % 5000);
      ASSERT_NO_FATAL_FAILURE(ExpectSame(drawn.curve, DrawSlowly(all_[0], range, max_points)))
          << range.first << " to " << range.last << " of " << stored << ", at most " << max_points;
      if (max_points > 0) {
        EXPECT_LE(drawn.curve.steps.size(), size_t(max_points));
      }
      int64_t points = 0, bad = 0;
      for (const domain::Point& point : all_[0]) {
        if (point.step < range.first || point.step > range.last) continue;
        ++points;
        if (std::isfinite(point.value)) continue;
        if (bad++ == 0) {
          EXPECT_EQ(drawn.whole.first_bad->step, point.step);
        }
      }
      EXPECT_EQ(drawn.points, points);
      EXPECT_EQ(drawn.whole.non_finite, bad);
    }
  }
}

TEST_F(CurvesTest, AFixedRangeStaysTheSameWhilePointsAreAppended) {
  StartAttempt();
  Append(5000, 3);
  std::vector<std::pair<CurveQuery, domain::Curve>> drawn;
  for (int i = 0; i < 40; ++i) {
    const int64_t first = static_cast<int64_t>(random_() % step_);
    const int64_t last = first + static_cast<int64_t>(random_() % (step_ - first));
    const CurveQuery query = {{first, last}, 0, 5 + static_cast<int64_t>(random_() % 500)};
    drawn.emplace_back(query, Draw(query).curve);
  }
  for (int round = 0; round < 6; ++round) {
    Append(1 + static_cast<int64_t>(random_() % 3000), 3);
    for (const auto& [query, curve] : drawn) ExpectSame(Draw(query).curve, curve);
  }
}

TEST_F(CurvesTest, AnOpenRangeKeepsItsBucketsUntilTheyDouble) {
  StartAttempt();
  domain::Curve before;
  int changes = 0;
  for (int round = 0; round < 300; ++round) {
    Append(37);
    const domain::Curve now = Draw({{}, 0, 200}).curve;
    // All but the last bucket's points, of which there are five at most, are there again.
    size_t same = 0;
    while (same < std::min(before.steps.size(), now.steps.size()) &&
           before.steps[same] == now.steps[same] &&
           SameValue(before.values[same], now.values[same])) {
      ++same;
    }
    if (same + 5 < before.steps.size()) ++changes;
    before = now;
  }
  EXPECT_LE(changes, 8) << "11,100 points in at most 40 buckets: 8, 16, ... 512 points each";
  EXPECT_GE(changes, 5);
}

TEST_F(CurvesTest, ASpikeInALongCurveIsDrawnFromFewRows) {
  StartAttempt();
  for (int i = 0; i < 50; ++i) Append(4000);
  ASSERT_TRUE(runs_.Append(attempt_.id, record_++, {StepRecord(++step_, {1e9})}).ok());
  for (int i = 0; i < 25; ++i) Append(4000);
  rows_read_ = 0;
  const Drawn drawn = Draw({{}, 0, 2000});
  EXPECT_LE(drawn.curve.steps.size(), 2000u);
  EXPECT_GE(drawn.curve.steps.size(), 500u);
  EXPECT_EQ(drawn.points, 300'001);
  EXPECT_NE(std::find(drawn.curve.values.begin(), drawn.curve.values.end(), 1e9),
            drawn.curve.values.end());
  EXPECT_LE(rows_read_, 2000 / 5 * 32 + 4 * 63);
}

TEST_F(CurvesTest, LineagesAreDrawnSegmentBySegment) {
  StartAttempt();
  Append(3000);
  StartAttempt(1500);
  Append(2000);
  Points joined(all_[0].begin(), all_[0].begin() + 1500);
  joined.insert(joined.end(), all_[1].begin(), all_[1].end());

  const Drawn whole = Draw({});
  ASSERT_EQ(whole.curve.steps.size(), joined.size());
  for (size_t i = 0; i < joined.size(); ++i) {
    ASSERT_EQ(whole.curve.steps[i], joined[i].step);
    ASSERT_TRUE(SameValue(whole.curve.values[i], joined[i].value));
  }
  const Drawn some = Draw({{}, 0, 100});
  EXPECT_LE(some.curve.steps.size(), 100u);
  EXPECT_TRUE(std::is_sorted(some.curve.steps.begin(), some.curve.steps.end()));
  EXPECT_EQ(some.points, 3500);
  // What the first attempt wrote beyond the checkpoint stays readable.
  const Drawn abandoned = Draw({{1501, 4000}, 1, 0});
  ASSERT_NO_FATAL_FAILURE(ExpectSame(abandoned.curve, DrawSlowly(all_[0], {1501, 4000}, 0)));
  EXPECT_EQ(Draw({{}, 2, 0}).points, 2000);
}

TEST_F(CurvesTest, MoreSegmentsThanPointsWantedAreJoined) {
  for (int i = 0; i < 60; ++i) {
    StartAttempt(i * 10);
    Append(10);
  }
  const Drawn drawn = Draw({{}, 0, 50});
  EXPECT_EQ(drawn.points, 600);
  EXPECT_LE(drawn.curve.steps.size(), 50u);
  EXPECT_EQ(drawn.curve.steps.front(), 1);
  EXPECT_EQ(drawn.curve.steps.back(), 600);
}

TEST_F(CurvesTest, AnUnknownRunOrAttemptIsNotFound) {
  StartAttempt();
  ASSERT_TRUE(runs_.store()
                  .Read([&](Database& database) {
                    CurveQuery query;
                    query.attempt = 2;
                    EXPECT_EQ(SegmentsOf(database, run_, query).status().code(),
                              absl::StatusCode::kNotFound);
                    EXPECT_EQ(SegmentsOf(database, "nobody", {}).status().code(),
                              absl::StatusCode::kNotFound);
                    return absl::OkStatus();
                  })
                  .ok());
}

// --- pages of every point ---

TEST(HistoryTest, PagesHoldWholeStepsWhateverStepsTheSeriesHave) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  const AttemptRow attempt = runs.StartAttempt(run);
  std::mt19937 random(23);
  std::vector<std::string> records = {SeriesRecord({"every", "tenth", "rare", "never"})};
  std::vector<int64_t> expected[4];
  int64_t step = 0;
  for (int i = 0; i < 2000; ++i) {
    // Steps may lie far apart; a page must not look for them one by one.
    step += i % 500 == 499 ? int64_t{1} << 40 : 1;
    worker::v1::Record record;
    record.mutable_step()->set_step(step);
    for (uint32_t series = 0; series < 3; ++series) {
      if (series == 1 && i % 10 != 0) continue;
      if (series == 2 && random() % 100 != 0) continue;
      record.mutable_step()->add_series(series);
      record.mutable_step()->add_values(i);
      expected[series].push_back(step);
    }
    records.push_back(record.SerializeAsString());
  }
  ASSERT_TRUE(runs.Append(attempt.id, 1, records).ok());
  ASSERT_TRUE(runs.store()
                  .Read([&](Database& database) {
                    for (const int64_t limit : {1, 7, 100, 5000}) {
                      std::vector<int64_t> found[4];
                      Segment rest = {attempt.id, 1, 0, step};
                      int pages = 0;
                      for (; rest.first <= rest.last; ++pages) {
                        const PointsPage page = ReadPage(database, run, rest, {}, limit).value();
                        int64_t points = 0;
                        for (const v1::Column& column : page.points.columns()) {
                          const size_t series = column.name() == "every"   ? 0
                                                : column.name() == "tenth" ? 1
                                                                           : 2;
                          for (const int64_t at : column.steps()) {
                            EXPECT_GE(at, rest.first);
                            EXPECT_LE(at, page.last_step);
                            found[series].push_back(at);
                            ++points;
                          }
                        }
                        EXPECT_LE(points, std::max<int64_t>(limit, 4));
                        EXPECT_GT(points, 0);
                        rest.first = page.last_step + 1;
                      }
                      for (int series = 0; series < 3; ++series)
                        EXPECT_EQ(found[series], expected[series]);
                    }
                    return absl::OkStatus();
                  })
                  .ok());
}

TEST(HistoryTest, OnlyTheSeriesAskedForAreRead) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  const AttemptRow attempt = runs.StartAttempt(run);
  ASSERT_TRUE(runs.Append(attempt.id, 1,
                          {SeriesRecord({"a", "b"}), StepRecord(1, {1, 2}), StepRecord(2, {3})})
                  .ok());
  ASSERT_TRUE(runs.store()
                  .Read([&](Database& database) {
                    const Segment all = {attempt.id, 1, 0, 2};
                    const PointsPage page = ReadPage(database, run, all, {"b", "c"}, 10).value();
                    EXPECT_EQ(page.points.columns_size(), 1);
                    EXPECT_THAT(page.points.columns(0).steps(), ElementsAre(1));
                    EXPECT_EQ(page.last_step, 2);
                    EXPECT_EQ(CountSteps(database, all, {"b"}).value(), 1);
                    EXPECT_EQ(CountSteps(database, all, {}).value(), 2);
                    return absl::OkStatus();
                  })
                  .ok());
}

// --- summaries ---

TEST(SummaryTest, NanInfinityAndNothingAreDifferentAfterARestart) {
  StoredRuns runs;
  const std::string run = runs.AddRun();
  const AttemptRow attempt = runs.StartAttempt(run);
  ASSERT_TRUE(runs.Append(attempt.id, 1,
                          {SeriesRecord({"loss", "validation_loss"}), StepRecord(1, {-kInfinity}),
                           StepRecord(2, {kNan})})
                  .ok());
  const auto check = [&] {
    const v1::Summary summary = runs.Read(run).summary();
    EXPECT_TRUE(summary.has_final_loss());
    EXPECT_TRUE(std::isnan(summary.final_loss()));
    EXPECT_FALSE(summary.has_min_loss()) << "no finite loss yet";
    EXPECT_FALSE(summary.has_final_gradient_norm()) << "never measured";
    EXPECT_FALSE(summary.has_max_gradient_norm());
    EXPECT_FALSE(summary.has_validation_loss());
    EXPECT_EQ(summary.first_bad_step(), 1);
  };
  check();
  runs.Close();
  runs.Open();
  check();
  // The attempt goes on with what the database says.
  ASSERT_TRUE(runs.Append(attempt.id, 4, {StepRecord(3, {kInfinity, kNan})}).ok());
  runs.Close();
  runs.Open();
  const v1::Summary summary = runs.Read(run).summary();
  EXPECT_EQ(summary.final_loss(), kInfinity);
  EXPECT_TRUE(summary.has_validation_loss());
  EXPECT_TRUE(std::isnan(summary.validation_loss()));
  ASSERT_TRUE(runs.Append(attempt.id, 5, {StepRecord(4, {-kInfinity, 2})}).ok());
  EXPECT_EQ(runs.Read(run).summary().final_loss(), -kInfinity);
  EXPECT_EQ(runs.Read(run).summary().validation_loss(), 2);
}

}  // namespace
}  // namespace normlab::storage
