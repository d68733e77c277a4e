#include "server/storage/journal.h"

#include <map>
#include <random>

#include "gtest/gtest.h"
#include "server/storage/history.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::storage {
namespace {

using fakes::SeriesRecord;
using fakes::StepRecord;
using fakes::StoredRuns;

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() : run_(runs_.AddRun()), attempt_(runs_.StartAttempt(run_)) {
    EXPECT_TRUE(runs_.Append(attempt_.id, record_++, {SeriesRecord({"loss"})}).ok());
  }

  // Stores one step some steps on; remembers the sequence that it was given.
  void AppendStep() {
    step_ += 1 + (random_() % 10 == 0 ? static_cast<int64_t>(random_() % 1'000'000) : 0);
    uint64_t sequence = 0;
    ASSERT_TRUE(runs_.store()
                    .writer()
                    .Write([&](WriteContext& context) {
                      sequence = context.sequence;
                      return runs_.store().attempt_log().Append(context, attempt_.id, record_++,
                                                                {StepRecord(step_, {1})});
                    })
                    .ok());
    stepped_[sequence] = step_;
    last_sequence_ = sequence;
  }

  // A write of something else, which takes a sequence.
  void WriteOther() {
    ASSERT_TRUE(runs_.store().writer().Write([](WriteContext&) { return absl::OkStatus(); }).ok());
    ++last_sequence_;
  }

  void ExpectExactForEverySequence() {
    ASSERT_TRUE(runs_.store()
                    .Read([&](Database& database) {
                      int64_t step = 0;
                      for (uint64_t at = attempt_.started_sequence; at <= last_sequence_; ++at) {
                        if (const auto found = stepped_.find(at); found != stepped_.end()) {
                          step = found->second;
                        }
                        const auto position = PositionAt(database, run_, at);
                        EXPECT_TRUE(position.ok()) << position.status();
                        if (!position.ok() || position->step != step) {
                          ADD_FAILURE()
                              << "at " << at << ": " << position->step << ", not " << step;
                          break;
                        }
                      }
                      return absl::OkStatus();
                    })
                    .ok());
  }

  int64_t Count(const char* sql) {
    int64_t count = -1;
    EXPECT_TRUE(runs_.store()
                    .Read([&](Database& database) {
                      Statement select = database.Prepared(sql);
                      EXPECT_TRUE(select.Step());
                      count = select.Integer(0);
                      return select.status();
                    })
                    .ok());
    return count;
  }
  int64_t Rows() { return Count("SELECT count(*) FROM journal"); }
  int64_t Pages() { return Count("SELECT count(*) FROM journal_pages"); }

  std::mt19937 random_{3};
  StoredRuns runs_;
  const std::string run_;
  const AttemptRow attempt_;
  uint64_t record_ = 1;
  int64_t step_ = 0;
  uint64_t last_sequence_ = 0;
  std::map<uint64_t, int64_t> stepped_;  // step by the sequence of its write
};

TEST_F(JournalTest, EverySequenceEverGivenOutStaysExact) {
  for (int i = 0; i < 1500; ++i) {
    AppendStep();
    while (random_() % 3 == 0) WriteOther();
    if (i % 97 == 0) {
      runs_.Close();
      runs_.Open();
    }
    if (i == 510 || i == 511 || i == 512 || i == 767 || i == 768) ExpectExactForEverySequence();
  }
  ExpectExactForEverySequence();
  EXPECT_LT(Rows(), 2 * kJournalPage);
  EXPECT_GE(Rows(), kJournalPage) << "the newest stay rows";
  EXPECT_EQ(Rows() + Pages() * kJournalPage, 1500);
}

TEST_F(JournalTest, AnAttemptsEndPacksTheRest) {
  for (int i = 0; i < 700; ++i) AppendStep();
  ASSERT_TRUE(
      runs_.store()
          .writer()
          .Write([&](WriteContext& context) { return EndAttempt(context, attempt_.id, {}); })
          .ok());
  ++last_sequence_;
  EXPECT_EQ(Rows(), 0);
  EXPECT_EQ(Pages(), 3);
  ExpectExactForEverySequence();
}

TEST_F(JournalTest, AnUndoneWritePacksNothing) {
  for (int i = 0; i < 511; ++i) AppendStep();
  EXPECT_EQ(Pages(), 0);
  ASSERT_FALSE(runs_.store()
                   .writer()
                   .Write([&](WriteContext& context) -> absl::Status {
                     auto status = runs_.store().attempt_log().Append(context, attempt_.id, record_,
                                                                      {StepRecord(step_ + 1, {1})});
                     EXPECT_TRUE(status.ok());
                     runs_.store().attempt_log().Forget(attempt_.id);
                     return absl::AbortedError("undone");
                   })
                   .ok());
  EXPECT_EQ(Pages(), 0);
  AppendStep();
  EXPECT_EQ(Pages(), 1);
  ExpectExactForEverySequence();
}

TEST_F(JournalTest, OldJournalsArePackedButForTheirNewestEntries) {
  for (int i = 0; i < 400; ++i) AppendStep();
  // As a database has it that never packed.
  ASSERT_TRUE(runs_.store()
                  .writer()
                  .Write([&](WriteContext& context) -> absl::Status {
                    Statement insert = context.database.Prepared(
                        "INSERT INTO journal (attempt, sequence, last_step) VALUES (?1, ?2, ?3)");
                    for (int64_t i = 0; i < 1000; ++i) {
                      insert.Bind(1, int64_t{999});
                      insert.Bind(2, 10 * i + 5);
                      insert.Bind(3, 3 * i + 1);
                      if (auto status = insert.Run(); !status.ok()) return status;
                      insert.Reset();
                    }
                    return PackJournals(context.database);
                  })
                  .ok());
  EXPECT_EQ(Pages(), 2);
  EXPECT_EQ(Rows(), 400 + 1000 - 2 * kJournalPage);
  ASSERT_TRUE(runs_.store()
                  .Read([&](Database& database) {
                    for (uint64_t at = 0; at < 10'000; ++at) {
                      const int64_t expected =
                          at < 5 ? 0 : 3 * static_cast<int64_t>((at - 5) / 10) + 1;
                      EXPECT_EQ(StepAt(database, 999, at).value(), expected) << at;
                    }
                    return absl::OkStatus();
                  })
                  .ok());
}

}  // namespace
}  // namespace normlab::storage
