// Watchers that come and go at random, on runs that are paused and resumed, over servers that are
// started again: whatever happens, each of them has seen every point once.
#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/app/run_watch.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::app {
namespace {

using fakes::StoredRuns;
using AttemptStep = std::pair<int32_t, int64_t>;

// A run as its trainers made it.
struct Run {
  std::string id;
  storage::AttemptRow attempt;
  uint64_t next_sequence = 1;
  int64_t step = 0;  // of the present attempt
  int64_t checkpoint = 0;
  bool ended = false;
  std::vector<AttemptStep> stored;
};

// What a client knows of one run.
struct Seen {
  std::vector<AttemptStep> points;
  v1::Run::State state = v1::Run::STATE_UNSPECIFIED;
  int ends = 0;
};

// Somebody who watches, over any number of streams. What came after the latest token does not
// count once the stream is cut, since it comes again.
class Client {
 public:
  Client(std::vector<std::string> runs, bool lobby) : runs_(std::move(runs)), lobby_(lobby) {}

  bool watching() const { return watch_ != nullptr; }
  void Connect(StoredRuns& server) {
    RunWatch::Options options;
    options.runs = runs_;
    options.lobby = lobby_;
    if (!token_.empty()) {
      const auto after =
          ReadResumeToken(token_, server.store().store_id(), server.hub().published());
      ASSERT_TRUE(after.ok()) << after.status();
      options.after = *after;
    }
    watch_ = std::make_unique<RunWatch>(server.store(), server.hub(), options);
    watch_->OnReady([] {});
    now_ = safe_;
  }
  void Disconnect() { watch_.reset(); }

  // Reads once, or until nothing is left; `cut` ends the stream behind some of the events.
  void Read(bool everything, const std::function<bool()>& cut) {
    do {
      std::optional<std::vector<WatchedEvent>> live = watch_->NextLive();
      absl::StatusOr<std::vector<WatchedEvent>> events = std::vector<WatchedEvent>();
      if (live) events = *std::move(live);
      if (!live) events = watch_->Next();
      ASSERT_TRUE(events.ok()) << events.status();
      for (const WatchedEvent& event : *events) {
        Take(event);
        if (cut()) return Disconnect();
      }
    } while (everything && watch_->more());
  }
  bool finished() const { return watch_->finished(); }
  const std::map<std::string, Seen>& seen() const { return now_; }
  const std::vector<std::string>& runs() const { return runs_; }
  bool lobby() const { return lobby_; }

 private:
  void Take(const WatchedEvent& event) {
    const v1::WatchRunsResponse& message = event.event->message();
    Seen& seen = now_[event.event->run()];
    if (message.has_points()) {
      ASSERT_GT(message.points().columns_size(), 0);
      for (const int64_t step : message.points().columns(0).steps()) {
        seen.points.emplace_back(message.points().attempt(), step);
      }
    }
    if (message.has_run()) seen.state = message.run().state();
    if (message.has_end()) {
      seen.state = message.end().run().state();
      ++seen.ends;
    }
    if (event.resume_token.empty()) return;
    token_ = event.resume_token;
    safe_ = now_;
  }

  const std::vector<std::string> runs_;
  const bool lobby_;
  std::unique_ptr<RunWatch> watch_;
  std::string token_;
  std::map<std::string, Seen> safe_, now_;  // up to the token, and all
};

class World {
 public:
  explicit World(uint32_t seed) : random_(seed), server_(size_t(1 + Below(24))) {
    for (int i = 0; i < 3; ++i) AddRun();
    for (int i = 0; i < 6; ++i) {
      std::vector<std::string> watched;
      for (const Run& run : runs_) {
        if (Below(2) == 0) watched.push_back(run.id);
      }
      const bool lobby = watched.empty() || Below(2) == 0;
      clients_.emplace_back(std::move(watched), lobby);
    }
  }

  void Live(int moments) {
    for (int i = 0; i < moments && !::testing::Test::HasFatalFailure(); ++i) {
      const int what = Below(100);
      Run& run = runs_[size_t(Below(int(runs_.size())))];
      if (what < 45) {
        AddSteps(run, 1 + Below(6));
      } else if (what < 50) {
        AddSteps(run, 100);
      } else if (what < 54) {
        Checkpoint(run);
      } else if (what < 57) {
        PauseAndResume(run);
      } else if (what < 58) {
        End(run);
      } else if (what < 60) {
        Restart();
      } else {
        Watch(clients_[size_t(Below(int(clients_.size())))]);
      }
    }
  }

  // Every client ends up with everything.
  void Settle() {
    for (Run& run : runs_) End(run);
    for (Client& client : clients_) {
      if (!client.watching()) client.Connect(server_);
      client.Read(/*everything=*/true, [] { return false; });
      EXPECT_EQ(client.finished(), !client.lobby());
      for (const Run& run : runs_) {
        const bool watched = std::count(client.runs().begin(), client.runs().end(), run.id) > 0;
        const auto found = client.seen().find(run.id);
        if (!watched && !client.lobby()) {
          EXPECT_EQ(found, client.seen().end());
          continue;
        }
        ASSERT_NE(found, client.seen().end());
        EXPECT_EQ(found->second.state, v1::Run::STATE_SUCCEEDED);
        EXPECT_EQ(found->second.points, watched ? run.stored : std::vector<AttemptStep>());
        if (watched) {
          EXPECT_EQ(found->second.ends, 1);
        }
      }
    }
  }

 private:
  int Below(int limit) { return int(random_() % uint32_t(limit)); }

  void AddRun() {
    Run run;
    run.id = server_.AddRun("auto", 1'000'000);
    runs_.push_back(run);
    StartAttempt(runs_.back(), 0);
  }
  void StartAttempt(Run& run, int64_t from) {
    run.attempt = server_.StartAttempt(run.id, from);
    run.next_sequence = 1;
    run.step = from;
    Append(run, {fakes::SeriesRecord({"loss", "gradient_norm"})});
  }
  void Append(Run& run, const std::vector<std::string>& records) {
    const absl::Status stored = server_.Append(run.attempt.id, run.next_sequence, records);
    ASSERT_TRUE(stored.ok()) << stored;
    run.next_sequence += records.size();
  }
  void AddSteps(Run& run, int count) {
    if (run.ended) return;
    std::vector<std::string> records;
    for (int i = 0; i < count; ++i) {
      ++run.step;
      records.push_back(fakes::StepRecord(run.step, {1.0 / double(run.step), double(run.step)}));
      run.stored.emplace_back(run.attempt.number, run.step);
    }
    Append(run, records);
  }
  void Checkpoint(Run& run) {
    if (run.ended || run.step == run.attempt.resumed_from_step) return;
    Append(run, {fakes::CheckpointRecord(run.step)});
    run.checkpoint = run.step;
  }
  void PauseAndResume(Run& run) {
    if (run.ended || run.checkpoint == 0) return;
    server_.SetState(run.id, v1::Run::STATE_PAUSED);
    if (Below(2) == 0) Restart();
    server_.SetState(run.id, v1::Run::STATE_QUEUED);
    StartAttempt(run, run.checkpoint);
  }
  void End(Run& run) {
    if (std::exchange(run.ended, true)) return;
    server_.SetState(run.id, v1::Run::STATE_SUCCEEDED);
  }
  void Restart() {
    for (Client& client : clients_) client.Disconnect();
    server_.Close();
    server_.Open();
  }
  void Watch(Client& client) {
    if (!client.watching()) {
      client.Connect(server_);
    } else if (Below(8) == 0) {
      client.Disconnect();
    } else {
      client.Read(Below(3) == 0, [this] { return Below(12) == 0; });
    }
  }

  std::mt19937 random_;
  StoredRuns server_;
  std::vector<Run> runs_;
  std::vector<Client> clients_;
};

TEST(ResumeTest, WhateverHappensEachWatcherSeesEachPointOnce) {
  const uint32_t first = std::random_device()();
  for (uint32_t seed = first; seed < first + 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    world.Live(400);
    world.Settle();
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace normlab::app
