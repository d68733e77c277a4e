#include "server/domain/run_state.h"

#include <signal.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace normlab::domain {
namespace {

using v1::Run;
using Outcome = AttemptEnd::Outcome;
using ::testing::HasSubstr;

TEST(RunStateTest, AnEndIsFollowedByAnotherTryOrNothing) {
  for (int from = Run::STATE_SUCCEEDED; from <= Run::STATE_TIMED_OUT; ++from) {
    for (int to = Run::STATE_QUEUED; to <= Run::STATE_TIMED_OUT; ++to) {
      const bool retry = to == Run::STATE_QUEUED && from != Run::STATE_SUCCEEDED;
      EXPECT_EQ(MayFollow(static_cast<RunState>(from), static_cast<RunState>(to)), retry);
    }
  }
}

TEST(RunStateTest, EveryRunCanEnd) {
  for (int from = Run::STATE_QUEUED; from < Run::STATE_SUCCEEDED; ++from) {
    bool ends = false;
    for (int to = Run::STATE_SUCCEEDED; to <= Run::STATE_TIMED_OUT; ++to) {
      ends = ends || MayFollow(static_cast<RunState>(from), static_cast<RunState>(to));
    }
    EXPECT_TRUE(ends) << from;
  }
}

TEST(RunStateTest, APausedOrInterruptedRunWaitsAgainAndNeverRunsWithoutWaiting) {
  EXPECT_TRUE(MayFollow(Run::STATE_PAUSED, Run::STATE_QUEUED));
  EXPECT_TRUE(MayFollow(Run::STATE_RUNNING, Run::STATE_QUEUED));
  EXPECT_TRUE(MayFollow(Run::STATE_PAUSING, Run::STATE_QUEUED)) << "to make room for another";
  EXPECT_FALSE(MayFollow(Run::STATE_CANCELLING, Run::STATE_QUEUED)) << "a cancel stands";
  for (const RunState to : {Run::STATE_STARTING, Run::STATE_RUNNING, Run::STATE_PAUSING,
                            Run::STATE_CANCELLING, Run::STATE_SUCCEEDED}) {
    EXPECT_FALSE(MayFollow(Run::STATE_PAUSED, to)) << to;
  }
  EXPECT_FALSE(MayFollow(Run::STATE_CANCELLING, Run::STATE_PAUSED)) << "a cancel stands";
}

TEST(StateAfterTest, TheTrainersOwnWordCountsMost) {
  AttemptEnd end;
  end.outcome = Outcome::kSucceeded;
  end.exit_signal = 9;  // killed after it had said that it was done
  EXPECT_EQ(StateAfter(end, false).state, Run::STATE_SUCCEEDED);
  EXPECT_EQ(StateAfter(end, true).state, Run::STATE_SUCCEEDED) << "it was faster than the cancel";
  end.outcome = Outcome::kDiverged;
  EXPECT_EQ(StateAfter(end, false).state, Run::STATE_DIVERGED);
}

TEST(StateAfterTest, APauseIsNoEndUnlessTheRunWasCancelledMeanwhile) {
  AttemptEnd end;
  end.outcome = Outcome::kPaused;
  end.last_step = 17;
  EXPECT_EQ(StateAfter(end, false).state, Run::STATE_PAUSED);
  EXPECT_EQ(StateAfter(end, true).state, Run::STATE_CANCELLED);
  EXPECT_THAT(StateAfter(end, true).reason, HasSubstr("after step 17"));
}

TEST(StateAfterTest, ALimitEndsARunWithTheTrainersReason) {
  AttemptEnd end;
  end.outcome = Outcome::kLimit;
  end.outcome_reason = "stopped behind step 100";
  EXPECT_EQ(StateAfter(end, false).state, Run::STATE_TIMED_OUT);
  EXPECT_EQ(StateAfter(end, false).reason, "stopped behind step 100");
  EXPECT_FALSE(WasInterrupted(end));
}

TEST(StateAfterTest, ACheckpointThatCannotBeReadIsNamedUnlessTheRunWasCancelled) {
  AttemptEnd end;
  end.outcome = Outcome::kUnreadable;
  end.outcome_reason = "step-2 is cut off";
  EXPECT_EQ(StateAfter(end, false).state, Run::STATE_FAILED) << "when nothing follows";
  EXPECT_THAT(StateAfter(end, false).reason, HasSubstr("step-2 is cut off"));
  EXPECT_EQ(StateAfter(end, true).state, Run::STATE_CANCELLED);
  EXPECT_FALSE(WasInterrupted(end));
}

TEST(InterruptedTest, AProcessThatWasKilledOrLostOrLeftAloneWas) {
  for (const int signal : {SIGKILL, SIGTERM, SIGHUP, SIGINT, SIGPWR, SIGXCPU}) {
    AttemptEnd end;
    end.exit_signal = signal;
    EXPECT_TRUE(WasInterrupted(end)) << signal;
  }
  AttemptEnd lost;
  lost.lost = true;
  EXPECT_TRUE(WasInterrupted(lost));
  AttemptEnd orphaned;
  orphaned.outcome = Outcome::kOrphaned;
  EXPECT_TRUE(WasInterrupted(orphaned));
  AttemptEnd stopped;
  stopped.outcome = Outcome::kStopped;  // it obeyed a signal from outside
  EXPECT_TRUE(WasInterrupted(stopped));
}

TEST(InterruptedTest, ARunsOwnEndWasNot) {
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGSYS}) {
    AttemptEnd end;
    end.exit_signal = signal;
    EXPECT_FALSE(WasInterrupted(end)) << signal;
  }
  for (const int code : {0, 1, 9, 127}) {
    AttemptEnd end;
    end.exit_code = code;
    EXPECT_FALSE(WasInterrupted(end)) << code;
  }
  for (const Outcome outcome :
       {Outcome::kSucceeded, Outcome::kDiverged, Outcome::kFailed, Outcome::kPaused}) {
    AttemptEnd end;
    end.outcome = outcome;
    end.exit_signal = SIGKILL;  // after its last word
    EXPECT_FALSE(WasInterrupted(end));
  }
  AttemptEnd never_started;
  never_started.never_started = true;
  EXPECT_FALSE(WasInterrupted(never_started));
}

TEST(StateAfterTest, WithoutAWordTheProcessTells) {
  AttemptEnd end;
  end.exit_code = 3;
  end.last_step = 17;
  EXPECT_THAT(StateAfter(end, false).reason, HasSubstr("code 3"));
  EXPECT_THAT(StateAfter(end, false).reason, HasSubstr("after step 17"));
  end.exit_code.reset();
  end.exit_signal = 9;
  end.max_rss_bytes = int64_t{300} << 20;
  EXPECT_THAT(StateAfter(end, false).reason, HasSubstr("SIGKILL"));
  EXPECT_THAT(StateAfter(end, false).reason, HasSubstr("300 MiB"));
  EXPECT_EQ(StateAfter(end, true).state, Run::STATE_CANCELLED);
}

}  // namespace
}  // namespace normlab::domain
