#include "server/app/run_watch.h"

#include <map>
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::app {
namespace {

using fakes::SeriesRecord;
using fakes::StepRecord;
using fakes::StoredRuns;

// What one client has seen, over any number of streams.
struct Seen {
  std::vector<int64_t> steps;
  std::vector<std::string> kinds;
  std::string token;

  void Take(const std::vector<WatchedEvent>& events) {
    for (const WatchedEvent& event : events) {
      const v1::WatchRunsResponse& message = event.event->message();
      if (message.has_points()) {
        for (const int64_t step : message.points().columns(0).steps()) steps.push_back(step);
      }
      kinds.push_back(message.has_run()       ? "run"
                      : message.has_end()     ? "end"
                      : message.has_attempt() ? "attempt"
                      : message.has_gap()     ? "gap"
                                              : "other");
      if (!event.resume_token.empty()) token = event.resume_token;
    }
  }
};

class RunWatchTest : public ::testing::Test {
 protected:
  std::unique_ptr<RunWatch> Watch(const std::vector<std::string>& ids,
                                  const std::string& token = "", bool tail = false,
                                  bool lobby = false) {
    RunWatch::Options options;
    options.runs = ids;
    options.tail = tail;
    options.lobby = lobby;
    if (!token.empty()) {
      options.after =
          ReadResumeToken(token, runs_.store().store_id(), runs_.hub().published()).value();
    }
    return std::make_unique<RunWatch>(runs_.store(), runs_.hub(), options);
  }

  void Drain(RunWatch& watch, Seen& seen) {
    while (true) {
      const auto events = watch.Next();
      ASSERT_TRUE(events.ok()) << events.status();
      if (events->empty()) return;
      seen.Take(*events);
    }
  }

  void AddSteps(int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      ASSERT_TRUE(runs_
                      .Append(attempt_.id, static_cast<uint64_t>(step + 1),
                              {StepRecord(step, {1.0 / double(step)})})
                      .ok());
    }
  }

  void SetUp() override {
    run_ = runs_.AddRun();
    attempt_ = runs_.StartAttempt(run_);
    ASSERT_TRUE(runs_.Append(attempt_.id, 1, {SeriesRecord({"loss"})}).ok());
  }

  static std::vector<int64_t> Range(int64_t first, int64_t last) {
    std::vector<int64_t> range;
    for (int64_t step = first; step <= last; ++step) range.push_back(step);
    return range;
  }

  StoredRuns runs_;
  std::string run_;
  storage::AttemptRow attempt_;
};

TEST_F(RunWatchTest, HistoryThenLiveThenEndWithoutGapOrRepeat) {
  AddSteps(1, 10);
  auto watch = Watch({run_});
  Seen seen;
  Drain(*watch, seen);
  EXPECT_EQ(seen.steps, Range(1, 10));
  AddSteps(11, 20);
  Drain(*watch, seen);
  EXPECT_FALSE(watch->finished());
  runs_.SetState(run_, v1::Run::STATE_SUCCEEDED);
  Drain(*watch, seen);
  EXPECT_EQ(seen.steps, Range(1, 20));
  EXPECT_EQ(seen.kinds.front(), "run");
  EXPECT_EQ(seen.kinds.back(), "end");
  EXPECT_TRUE(watch->finished());
}

TEST_F(RunWatchTest, EachAttemptIsAnnouncedBeforeItsPointsAndEachStepComesOnce) {
  AddSteps(1, 5);
  auto watch = Watch({run_});
  Seen early;
  Drain(*watch, early);
  AddSteps(6, 10);
  ASSERT_TRUE(runs_.Append(attempt_.id, 12, {fakes::CheckpointRecord(10)}).ok());
  attempt_ = runs_.StartAttempt(run_, /*resumed_from=*/10);
  ASSERT_TRUE(runs_.Append(attempt_.id, 1, {SeriesRecord({"loss"})}).ok());
  ASSERT_TRUE(runs_.Append(attempt_.id, 2, {StepRecord(11, {1}), StepRecord(12, {2})}).ok());
  Seen fresh;
  Drain(*Watch({run_}), fresh);
  EXPECT_EQ(fresh.steps, Range(1, 12));
  EXPECT_THAT(fresh.kinds, ::testing::ElementsAre("run", "attempt", "other", "attempt", "other"));
  Seen late;
  Drain(*Watch({run_}, early.token), late);
  EXPECT_EQ(late.steps, Range(6, 12));
  EXPECT_THAT(late.kinds, ::testing::ElementsAre("run", "other", "attempt", "other"));
  Seen tail;
  Drain(*Watch({run_}, "", /*tail=*/true), tail);
  EXPECT_THAT(tail.kinds, ::testing::ElementsAre("run", "attempt", "attempt", "gap"));
}

TEST_F(RunWatchTest, ATokenTakenAnywhereResumesExactlyThere) {
  auto watch = Watch({run_});
  Seen first;
  Drain(*watch, first);
  struct Point {
    std::string token;
    size_t seen;
  };
  std::vector<Point> points;
  for (int64_t step = 1; step <= 30; ++step) {
    AddSteps(step, step);
    Drain(*watch, first);
    points.push_back({first.token, first.steps.size()});
  }
  runs_.SetState(run_, v1::Run::STATE_FAILED);
  for (const bool restarted : {false, true}) {
    if (restarted) {
      runs_.Close();
      runs_.Open();
    }
    for (const Point& point : points) {
      Seen rest;
      auto resumed = Watch({run_}, point.token);
      Drain(*resumed, rest);
      EXPECT_EQ(rest.steps, Range(int64_t(point.seen) + 1, 30));
      EXPECT_TRUE(resumed->finished());
    }
  }
}

TEST_F(RunWatchTest, AWatcherFallenBehindReadsTheDatabaseAndCatchesUp) {
  auto watch = Watch({run_});
  Seen seen;
  Drain(*watch, seen);
  AddSteps(1, 3 * StoredRuns::kKeptEvents);
  Drain(*watch, seen);
  EXPECT_EQ(seen.steps, Range(1, 3 * StoredRuns::kKeptEvents));
}

TEST_F(RunWatchTest, ManyWatchersComingAndGoingWhileStepsAreWritten) {
  std::mt19937 random(7);
  std::vector<Seen> clients(5);
  std::vector<std::unique_ptr<RunWatch>> watches(clients.size());
  for (int64_t step = 1; step <= 400; ++step) {
    AddSteps(step, step);
    const size_t i = random() % clients.size();
    if (!watches[i] || random() % 3 == 0) watches[i] = Watch({run_}, clients[i].token);
    if (random() % 2 == 0) Drain(*watches[i], clients[i]);
  }
  for (size_t i = 0; i < clients.size(); ++i) {
    watches[i] = Watch({run_}, clients[i].token);
    Drain(*watches[i], clients[i]);
    EXPECT_EQ(clients[i].steps, Range(1, 400)) << "client " << i;
  }
}

TEST_F(RunWatchTest, ATokenIsExactForSeveralRunsThatCaughtUpAtDifferentTimes) {
  struct Writer {
    std::string run;
    int64_t attempt;
    int64_t step = 0;
  };
  std::vector<Writer> writers = {{run_, attempt_.id}};
  for (int i = 0; i < 2; ++i) {
    const std::string run = runs_.AddRun();
    writers.push_back({run, runs_.StartAttempt(run).id});
    ASSERT_TRUE(runs_.Append(writers.back().attempt, 1, {SeriesRecord({"loss"})}).ok());
  }
  bool ended = false;  // the first run, after which nothing is written to it
  const auto write = [&](Writer& writer) {
    if (ended && &writer == &writers[0]) return;
    ++writer.step;
    ASSERT_TRUE(runs_
                    .Append(writer.attempt, static_cast<uint64_t>(writer.step + 1),
                            {StepRecord(writer.step, {1})})
                    .ok());
  };
  std::mt19937 random(11);
  std::map<std::string, std::vector<int64_t>> seen;  // of one client over many streams
  std::map<std::string, std::vector<int64_t>> pending;
  std::string token;
  for (int stream = 0; stream < 60; ++stream) {
    auto watch = Watch({writers[0].run, writers[1].run, writers[2].run}, token);
    pending.clear();
    for (unsigned turns = random() % 12; turns > 0; --turns) {
      for (unsigned writes = random() % 4; writes > 0; --writes) write(writers[random() % 3]);
      // One run far ahead, so that its target falls behind what the hub keeps.
      if (random() % 40 == 0) {
        for (size_t i = 0; i < 3 * StoredRuns::kKeptEvents; ++i)
          write(writers[random() % 3 == 0 ? 1 : 2]);
      }
      if (stream >= 30 && !ended) {
        runs_.SetState(writers[0].run, v1::Run::STATE_FAILED);
        ended = true;
      }
      const auto events = watch->Next();
      ASSERT_TRUE(events.ok());
      for (const WatchedEvent& event : *events) {
        const v1::WatchRunsResponse& message = event.event->message();
        if (message.has_points()) {
          for (const int64_t step : message.points().columns(0).steps()) {
            pending[message.points().run()].push_back(step);
          }
        }
        if (event.resume_token.empty()) continue;
        // Only what a token vouches for was surely seen.
        token = event.resume_token;
        for (auto& [run, steps] : pending) {
          seen[run].insert(seen[run].end(), steps.begin(), steps.end());
        }
        pending.clear();
      }
    }
  }
  auto watch = Watch({writers[0].run, writers[1].run, writers[2].run}, token);
  for (int i = 0; i < 1000; ++i) {
    const auto events = watch->Next();
    ASSERT_TRUE(events.ok());
    if (events->empty()) break;
    for (const WatchedEvent& event : *events) {
      const v1::WatchRunsResponse& message = event.event->message();
      if (!message.has_points()) continue;
      for (const int64_t step : message.points().columns(0).steps()) {
        seen[message.points().run()].push_back(step);
      }
    }
  }
  EXPECT_TRUE(ended);
  for (const Writer& writer : writers) EXPECT_EQ(seen[writer.run], Range(1, writer.step));
}

TEST_F(RunWatchTest, ATailSaysWhatItLeftOut) {
  AddSteps(1, 10);
  auto watch = Watch({run_}, "", /*tail=*/true);
  Seen seen;
  Drain(*watch, seen);
  EXPECT_TRUE(seen.steps.empty());
  EXPECT_THAT(seen.kinds, ::testing::Contains("gap"));
  AddSteps(11, 12);
  Drain(*watch, seen);
  EXPECT_EQ(seen.steps, Range(11, 12));
}

TEST_F(RunWatchTest, TheLobbyTellsStatesOfRunsMadeLater) {
  auto watch = Watch({}, "", false, /*lobby=*/true);
  Seen seen;
  Drain(*watch, seen);
  EXPECT_EQ(seen.kinds, (std::vector<std::string>{"run"}));
  const std::string later = runs_.AddRun();
  AddSteps(1, 3);
  Drain(*watch, seen);
  EXPECT_GE(seen.kinds.size(), 2u);
  EXPECT_TRUE(seen.steps.empty());
  EXPECT_FALSE(watch->finished());
}

// One commit may change more runs than a read may take.
TEST_F(RunWatchTest, TheLobbyThatComesBackReadsInPagesAndMissesNothing) {
  constexpr size_t kRuns = 1000;
  Seen seen;
  Drain(*Watch({}, "", false, true), seen);
  std::set<std::string> ids;
  ASSERT_TRUE(runs_.store()
                  .writer()
                  .Write([&](storage::WriteContext& context) {
                    for (size_t i = 0; i < kRuns; ++i) {
                      const v1::Run run = runs_.MakeRun();
                      ids.insert(run.id());
                      absl::Status status = storage::InsertRun(context, run);
                      if (!status.ok()) return status;
                    }
                    return absl::OkStatus();
                  })
                  .ok());
  const auto watch = Watch({}, seen.token, false, true);
  std::map<std::string, v1::Run::State> told;
  std::string token;
  size_t reads = 0, events_read = 0;
  while (true) {
    const auto events = watch->Next();
    ASSERT_TRUE(events.ok()) << events.status();
    if (events->empty()) break;
    EXPECT_LE(events->size(), 400u);
    EXPECT_TRUE(token.empty()) << "before everything was told";
    for (const WatchedEvent& event : *events) {
      told[event.event->run()] = event.event->message().run().state();
      if (!event.resume_token.empty()) token = event.resume_token;
    }
    events_read += events->size();
    // Meanwhile one that was told and one that was not are paused.
    if (++reads != 1) continue;
    runs_.SetState(*ids.begin(), v1::Run::STATE_PAUSED);
    runs_.SetState(*ids.rbegin(), v1::Run::STATE_PAUSED);
  }
  EXPECT_EQ(told.size(), kRuns);
  EXPECT_EQ(events_read, kRuns + 1) << "one twice";
  EXPECT_GE(reads, kRuns / 200);
  EXPECT_EQ(told[*ids.begin()], v1::Run::STATE_PAUSED);
  EXPECT_EQ(told[*ids.rbegin()], v1::Run::STATE_PAUSED);
  Seen rest;
  Drain(*Watch({}, token, false, true), rest);
  EXPECT_TRUE(rest.kinds.empty());
}

TEST_F(RunWatchTest, ForeignLaterAndSenselessTokensAreRefused) {
  const std::string& id = runs_.store().store_id();
  const uint64_t latest = runs_.hub().published();
  EXPECT_EQ(ReadResumeToken("deadbeef-1", id, latest).status().code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ReadResumeToken(MakeResumeToken(id, latest + 1), id, latest).status().code(),
            absl::StatusCode::kOutOfRange);
  for (const char* bad : {"x", "-", "1", "a-", "a--1", "a-1x", "a-99999999999999999999999"}) {
    EXPECT_FALSE(ReadResumeToken(bad, id, latest).ok()) << bad;
  }
  EXPECT_FALSE(ReadResumeToken(id + "-01", id, 1).ok()) << "no token is written so";
}

TEST_F(RunWatchTest, RingsWhenThereIsSomethingToRead) {
  auto watch = Watch({run_});
  Seen seen;
  std::atomic<int> rings = 0;
  watch->OnReady([&] { ++rings; });
  Drain(*watch, seen);
  AddSteps(1, 1);
  EXPECT_GE(rings, 1);
  watch->OnReady(nullptr);
  const int before = rings;
  AddSteps(2, 2);
  EXPECT_EQ(rings, before);
}

}  // namespace
}  // namespace normlab::app
