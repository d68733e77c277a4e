// What watchers see of runs that are deleted.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/app/run_watch.h"
#include "server/storage/run_deletion.h"
#include "server/storage/run_description.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::app {
namespace {

using fakes::StoredRuns;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DeletedRunsWatchTest : public ::testing::Test {
 protected:
  std::unique_ptr<RunWatch> Watch(const std::vector<std::string>& runs, bool lobby,
                                  const std::string& token = "") {
    RunWatch::Options options;
    options.runs = runs;
    options.lobby = lobby;
    if (!token.empty()) {
      options.after =
          ReadResumeToken(token, runs_.store().store_id(), runs_.hub().published()).value();
    }
    return std::make_unique<RunWatch>(runs_.store(), runs_.hub(), options);
  }
  // Reads until nothing is left; "deleted RUN" for deletions, kinds of the others left out. Keeps
  // the latest token.
  std::vector<std::string> Deletions(RunWatch& watch) {
    std::vector<std::string> deleted;
    while (true) {
      const auto events = watch.Next();
      EXPECT_TRUE(events.ok()) << events.status();
      if (!events.ok() || events->empty()) return deleted;
      for (const WatchedEvent& event : *events) {
        const v1::WatchRunsResponse& message = event.event->message();
        if (message.has_deleted()) deleted.push_back(message.deleted().run());
        if (!event.resume_token.empty()) token_ = event.resume_token;
      }
    }
  }
  std::string EndedRun() {
    const std::string run = runs_.AddRun();
    const storage::AttemptRow attempt = runs_.StartAttempt(run);
    EXPECT_TRUE(
        runs_.Append(attempt.id, 1, {fakes::SeriesRecord({"loss"}), fakes::StepRecord(1, {0.5})})
            .ok());
    runs_.SetState(run, v1::Run::STATE_SUCCEEDED);
    return run;
  }
  void Delete(const std::string& run) {
    ASSERT_TRUE(
        runs_.store()
            .writer()
            .Write([&](storage::WriteContext& context) { return storage::DeleteRun(context, run); })
            .ok());
  }

  StoredRuns runs_;
  std::string token_;
};

TEST_F(DeletedRunsWatchTest, TheLobbyHearsItLive) {
  const std::string run = EndedRun();
  const auto lobby = Watch({}, true);
  EXPECT_THAT(Deletions(*lobby), IsEmpty());
  Delete(run);
  EXPECT_THAT(Deletions(*lobby), ElementsAre(run));
  EXPECT_FALSE(lobby->finished());
}

TEST_F(DeletedRunsWatchTest, TheLobbyThatComesBackLearnsOfDeletionsSinceAndOfNoOthers) {
  const std::string first = EndedRun(), second = EndedRun();
  Delete(first);
  const auto lobby = Watch({}, true);
  EXPECT_THAT(Deletions(*lobby), IsEmpty());
  Delete(second);
  runs_.Open();  // the next server: nothing of it is in memory
  const auto again = Watch({}, true, token_);
  EXPECT_THAT(Deletions(*again), ElementsAre(second));
  const auto once_more = Watch({}, true, token_);
  EXPECT_THAT(Deletions(*once_more), IsEmpty());
}

TEST_F(DeletedRunsWatchTest, TheLobbyThatComesBackLearnsOfManyDeletionsInPages) {
  Deletions(*Watch({}, true));
  std::vector<std::string> runs;
  for (int i = 0; i < 450; ++i) runs.push_back(EndedRun());
  const auto lobby = Watch({}, true);
  Deletions(*lobby);
  const std::string before = token_;
  ASSERT_TRUE(runs_.store()
                  .writer()
                  .Write([&](storage::WriteContext& context) {
                    for (const std::string& run : runs) {
                      absl::Status status = storage::DeleteRun(context, run);
                      if (!status.ok()) return status;
                    }
                    return absl::OkStatus();
                  })
                  .ok());
  runs_.Open();
  EXPECT_EQ(Deletions(*Watch({}, true, before)), runs);
}

TEST_F(DeletedRunsWatchTest, AStreamOfADeletedRunEnds) {
  const std::string run = EndedRun(), live = runs_.AddRun();
  const auto before = Watch({run}, false);  // reads nothing until it is gone
  const auto both = Watch({run, live}, false);
  EXPECT_THAT(Deletions(*both), IsEmpty());
  Delete(run);
  EXPECT_THAT(Deletions(*before), ElementsAre(run));
  EXPECT_TRUE(before->finished());
  EXPECT_FALSE(both->finished());
}

TEST_F(DeletedRunsWatchTest, OneWhoComesBackToADeletedRunIsToldAndTheStreamEnds) {
  const std::string run = EndedRun(), other = runs_.AddRun();
  const auto watch = Watch({run, other}, true);
  Deletions(*watch);
  Delete(run);
  const auto again = Watch({run, other}, true, token_);
  EXPECT_THAT(Deletions(*again), ElementsAre(run));  // once, though the lobby hears it as well
}

TEST_F(DeletedRunsWatchTest, WordsAboutAnEndedRunLeaveNothingInTheHub) {
  const std::string run = EndedRun();
  storage::RunDescription words;
  words.notes = "fine";
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(runs_.store()
                    .writer()
                    .Write([&](storage::WriteContext& context) {
                      return storage::DescribeRun(context, run, words);
                    })
                    .ok());
  }
  // A feed that is kept would have them.
  EXPECT_THAT(runs_.hub().Read(run, runs_.hub().published() - 1, 10).events, IsEmpty());
}

}  // namespace
}  // namespace normlab::app
