// What watchers of all runs see of runs that have ended, and whose points they watch.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/app/run_watch.h"
#include "server/storage/run_description.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::app {
namespace {

using fakes::StoredRuns;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EndedRunsWatchTest : public ::testing::Test {
 protected:
  // A page: the states of all runs, and the points of this one.
  std::unique_ptr<RunWatch> Watch(const std::string& run) {
    RunWatch::Options options;
    options.runs = {run};
    options.lobby = true;
    auto watch = std::make_unique<RunWatch>(runs_.store(), runs_.hub(), options);
    watch->OnReady([] {});  // as a stream does: what it has not read yet is kept for it
    return watch;
  }
  // Reads until nothing is left, and says of what came "run NOTES", "points ATTEMPT" or "end".
  std::vector<std::string> Read(RunWatch& watch) {
    std::vector<std::string> read;
    while (true) {
      const auto events = watch.Next();
      EXPECT_TRUE(events.ok()) << events.status();
      if (!events.ok() || events->empty()) return read;
      for (const WatchedEvent& event : *events) {
        const v1::WatchRunsResponse& message = event.event->message();
        if (message.has_run()) read.push_back("run " + message.run().notes());
        if (message.has_end()) read.push_back("end");
        if (message.has_points()) {
          read.push_back("points " + std::to_string(message.points().attempt()));
        }
      }
    }
  }
  void Train(const std::string& run, double loss) {
    const storage::AttemptRow attempt = runs_.StartAttempt(run);
    ASSERT_TRUE(
        runs_.Append(attempt.id, 1, {fakes::SeriesRecord({"loss"}), fakes::StepRecord(1, {loss})})
            .ok());
  }
  void Note(const std::string& run, const std::string& notes) {
    storage::RunDescription words;
    words.notes = notes;
    ASSERT_TRUE(runs_.store()
                    .writer()
                    .Write([&](storage::WriteContext& context) {
                      return storage::DescribeRun(context, run, words);
                    })
                    .ok());
  }

  StoredRuns runs_;
};

TEST_F(EndedRunsWatchTest, WordsAboutOneAreHeardOnce) {
  const std::string run = runs_.AddRun();
  const auto watch = Watch(run);
  Read(*watch);
  Train(run, 0.5);
  runs_.SetState(run, v1::Run::STATE_FAILED);
  EXPECT_THAT(Read(*watch), Contains("end"));
  Note(run, "out of memory");
  EXPECT_THAT(Read(*watch), ElementsAre("run out of memory"));
  EXPECT_THAT(Read(*watch), IsEmpty());
}

TEST_F(EndedRunsWatchTest, WordsAreHeardByOneWhoCameAfterItsEnd) {
  const std::string run = runs_.AddRun();
  Train(run, 0.5);
  runs_.SetState(run, v1::Run::STATE_FAILED);
  const auto watch = Watch(run);
  EXPECT_THAT(Read(*watch), Contains("end"));
  Note(run, "out of memory");
  EXPECT_THAT(Read(*watch), ElementsAre("run out of memory"));
}

TEST_F(EndedRunsWatchTest, OneThatIsTriedAgainComesBackToLife) {
  const std::string run = runs_.AddRun();
  const auto watch = Watch(run);
  Train(run, 0.5);
  runs_.SetState(run, v1::Run::STATE_FAILED);
  EXPECT_THAT(Read(*watch), Contains("end"));
  runs_.SetState(run, v1::Run::STATE_QUEUED);
  Train(run, 0.25);
  EXPECT_THAT(Read(*watch), Contains("points 2"));
  runs_.SetState(run, v1::Run::STATE_SUCCEEDED);
  EXPECT_THAT(Read(*watch), Contains("end"));
  EXPECT_FALSE(watch->finished());
}

}  // namespace
}  // namespace normlab::app
