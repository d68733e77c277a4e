#include "server/storage/levels.h"

#include <cmath>
#include <optional>
#include <random>

#include "gtest/gtest.h"
#include "server/storage/curves.h"
#include "server/storage/migrations.h"
#include "tests/fakes/stored_runs.h"
#include "tests/non_finite.h"

namespace normlab::storage {
namespace {

using fakes::SeriesRecord;
using fakes::StepRecord;
using fakes::StoredRuns;

// What the database should hold of one series, kept the slow way.
struct Model {
  std::vector<domain::Point> points;

  domain::Block BlockOf(int64_t begin, int64_t end) const {
    domain::Block block;
    for (int64_t i = begin; i < end; ++i) AddPoint(block, points[static_cast<size_t>(i)]);
    return block;
  }
};

bool Same(const std::optional<domain::Point>& a, const std::optional<domain::Point>& b) {
  if (!a || !b) return !a && !b;
  return a->step == b->step &&
         (a->value == b->value || (std::isnan(a->value) && std::isnan(b->value)));
}

void ExpectSame(const domain::Block& found, const domain::Block& expected) {
  EXPECT_EQ(found.points, expected.points);
  EXPECT_EQ(found.non_finite, expected.non_finite);
  EXPECT_TRUE(Same(found.first, expected.first));
  EXPECT_TRUE(Same(found.last, expected.last));
  EXPECT_TRUE(Same(found.lowest, expected.lowest));
  EXPECT_TRUE(Same(found.highest, expected.highest));
  EXPECT_TRUE(Same(found.first_bad, expected.first_bad));
}

double SomeValue(std::mt19937& random) {
  switch (random() % 40) {
    case 0:
      return kNan;
    case 1:
      return kInfinity;
    case 2:
      return -kInfinity;
    default:
      return std::ldexp(static_cast<double>(random()), -20) - 2000;
  }
}

class LevelsTest : public ::testing::Test {
 protected:
  LevelsTest() : run_(runs_.AddRun()), attempt_(runs_.StartAttempt(run_)) {
    EXPECT_TRUE(runs_.Append(attempt_.id, sequence_++, {SeriesRecord({"loss", "extra"})}).ok());
  }

  // Stores `count` more steps, in batches of some sizes; steps have gaps.
  void Append(int64_t count) {
    while (count > 0) {
      std::vector<std::string> records;
      const int64_t batch = std::min<int64_t>(count, 1 + static_cast<int64_t>(random_() % 300));
      for (int64_t i = 0; i < batch; ++i) {
        step_ += 1 + static_cast<int64_t>(random_() % 3);
        const std::vector<double> values = {SomeValue(random_), SomeValue(random_)};
        for (size_t s = 0; s < values.size(); ++s) models_[s].points.push_back({step_, values[s]});
        records.push_back(StepRecord(step_, values));
      }
      ASSERT_TRUE(runs_.Append(attempt_.id, sequence_, records).ok());
      sequence_ += records.size();
      count -= batch;
    }
  }

  int64_t SeriesId(size_t index) {
    int64_t id = 0;
    Read([&](Database& database) {
      Statement select =
          database.Prepared("SELECT id FROM series WHERE attempt = ?1 AND position = ?2");
      select.Bind(1, attempt_.id);
      select.Bind(2, static_cast<int64_t>(index));
      EXPECT_TRUE(select.Step());
      id = select.Integer(0);
    });
    return id;
  }

  void Read(const std::function<void(Database&)>& work) {
    ASSERT_TRUE(runs_.store()
                    .Read([&](Database& database) {
                      work(database);
                      return absl::OkStatus();
                    })
                    .ok());
  }

  int64_t CountRows(int64_t series, int level) {
    int64_t rows = -1;
    Read([&](Database& database) {
      Statement select =
          database.Prepared("SELECT count(*) FROM levels WHERE series = ?1 AND level = ?2");
      select.Bind(1, series);
      select.Bind(2, int64_t{level});
      EXPECT_TRUE(select.Step());
      rows = select.Integer(0);
    });
    return rows;
  }

  // Every full block is there, once, and is what its points are together.
  void ExpectLevelsAreRight() {
    for (size_t s = 0; s < models_.size(); ++s) {
      const int64_t series = SeriesId(s);
      const auto points = static_cast<int64_t>(models_[s].points.size());
      for (auto [level, size] = std::pair{1, kFanOut}; level <= 4; ++level, size *= kFanOut) {
        EXPECT_EQ(CountRows(series, level), points / size) << "level " << level;
        Read([&, level = level, size = size](Database& database) {
          BlockReader reader({series, 0, points / size * size, 0}, size);
          int64_t rows = points / size;
          const auto complete = reader.Read(database, rows, [&](int64_t number, const auto& block) {
            ExpectSame(block, models_[s].BlockOf(number, number + size));
          });
          ASSERT_TRUE(complete.ok()) << complete.status();
          EXPECT_TRUE(*complete) << "whole blocks need a row each";
        });
      }
    }
  }

  std::mt19937 random_{5};
  StoredRuns runs_;
  const std::string run_;
  const AttemptRow attempt_;
  uint64_t sequence_ = 1;
  int64_t step_ = 0;
  std::vector<Model> models_ = std::vector<Model>(2);
};

TEST_F(LevelsTest, BlocksAreWrittenOnceFull) {
  for (const int64_t points : {63, 1, 1, 62, 1, 3967, 1, 1}) {  // 63 64 65 127 128 4095 4096 4097
    Append(points);
    ExpectLevelsAreRight();
  }
}

TEST_F(LevelsTest, GoOnAfterRestartsAndFailedBatches) {
  for (int round = 0; round < 12; ++round) {
    Append(static_cast<int64_t>(random_() % 700));
    if (round % 3 == 0) {
      runs_.Close();
      runs_.Open();
    }
    // Stores a point of the next step and is then undone.
    EXPECT_FALSE(
        runs_.Append(attempt_.id, sequence_, {StepRecord(step_ + 1, {1, 2}), "\xFF garbage"}).ok());
    ExpectLevelsAreRight();
  }
}

TEST_F(LevelsTest, AThirdLevelComesAtItsBlocksEnd) {
  Append(64 * 64 * 64 - 1);
  EXPECT_EQ(CountRows(SeriesId(0), 3), 0);
  Append(1);
  ExpectLevelsAreRight();
  EXPECT_EQ(CountRows(SeriesId(0), 3), 1);
}

TEST_F(LevelsTest, PointsAreCountedUpToAnyStep) {
  Append(777);
  Read([&](Database& database) {
    for (int64_t step = 0; step <= step_ + 2; ++step) {
      const auto expected =
          std::count_if(models_[0].points.begin(), models_[0].points.end(),
                        [&](const domain::Point& point) { return point.step <= step; });
      EXPECT_EQ(CountUpTo(database, SeriesId(0), step).value(), expected) << step;
    }
  });
}

TEST_F(LevelsTest, AnySliceIsReadExactlyInAnyNumberOfPieces) {
  Append(9000);
  const int64_t series = SeriesId(1);
  const auto points = static_cast<int64_t>(models_[1].points.size());
  for (int round = 0; round < 300; ++round) {
    const int64_t begin = static_cast<int64_t>(random_() % points);
    const int64_t end = begin + static_cast<int64_t>(random_() % (points - begin + 1));
    const int64_t largest = int64_t{1} << (random_() % 15);
    int64_t next = begin, blocks = 0;
    Read([&](Database& database) {
      BlockReader reader({series, begin, end, models_[1].points[size_t(begin)].step}, largest);
      for (bool complete = false; !complete;) {
        int64_t rows = 1 + static_cast<int64_t>(random_() % 200);
        const int64_t allowed = rows;
        int64_t read = 0;
        complete = reader
                       .Read(database, rows,
                             [&](int64_t number, const domain::Block& block) {
                               EXPECT_EQ(number, next);
                               EXPECT_LE(block.points, largest);
                               EXPECT_EQ(number % block.points, 0);
                               ExpectSame(block, models_[1].BlockOf(number, number + block.points));
                               next += block.points;
                               ++read;
                             })
                       .value();
        EXPECT_EQ(allowed - rows, read);
        blocks += read;
      }
    });
    EXPECT_EQ(next, end);
    const int64_t coarsest = largest < 64 ? 1 : largest < 4096 ? 64 : 4096;
    EXPECT_LE(blocks, (end - begin) / coarsest + 4 * 63);
  }
}

TEST_F(LevelsTest, ALostRowIsAnErrorAndNotAnotherCurve) {
  Append(300);
  const int64_t series = SeriesId(0);
  ASSERT_TRUE(runs_.store()
                  .writer()
                  .Write([&](WriteContext& context) {
                    return context.database.Execute(
                        "DELETE FROM levels WHERE block = 1 AND series = " +
                        std::to_string(series));
                  })
                  .ok());
  Read([&](Database& database) {
    BlockReader reader({series, 0, 300, 0}, 64);
    int64_t rows = 1000;
    const auto read = reader.Read(database, rows, [](int64_t, const domain::Block&) {});
    EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
  });
}

TEST_F(LevelsTest, ADatabaseWithoutLevelsGetsTheSameOnes) {
  Append(5000);
  ASSERT_TRUE(runs_.store()
                  .writer()
                  .Write([&](WriteContext& context) -> absl::Status {
                    if (auto s = context.database.Execute("DELETE FROM levels"); !s.ok()) return s;
                    return BuildLevels(context.database);
                  })
                  .ok());
  ExpectLevelsAreRight();
  Append(200);
  ExpectLevelsAreRight();
}

}  // namespace
}  // namespace normlab::storage
