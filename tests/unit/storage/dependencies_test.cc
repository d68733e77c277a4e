#include "server/storage/dependencies.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/strings.h"
#include "server/storage/queue_changes.h"
#include "server/storage/run_deletion.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::SizeIs;

class DependenciesTest : public ::testing::Test {
 protected:
  std::string Add(const std::string& name,
                  const std::vector<std::pair<std::string, std::string>>& after = {}) {
    v1::Run run = runs_.MakeRun();
    run.set_display_name(name);
    *run.mutable_after() = After(after);
    EXPECT_TRUE(Write([&](WriteContext& context) { return InsertRun(context, run); }).ok());
    return run.id();
  }
  static Dependencies After(const std::vector<std::pair<std::string, std::string>>& pairs) {
    Dependencies after;
    for (const auto& [run, condition] : pairs) {
      v1::Dependency& dependency = *after.Add();
      dependency.set_run(run);
      dependency.set_condition(condition);
    }
    return after;
  }
  absl::Status Write(const std::function<absl::Status(WriteContext&)>& work) {
    return runs_.store().writer().Write(work);
  }
  absl::Status ChangeAfter(const std::string& run, const Dependencies& after) {
    QueueChange change;
    change.after = after;
    return Write([&](WriteContext& context) { return ChangeQueued(context, run, change); });
  }
  std::map<std::string, std::vector<UnmetDependency>> Unmet() {
    std::map<std::string, std::vector<UnmetDependency>> unmet;
    EXPECT_TRUE(runs_.store()
                    .Read([&](Database& database) {
                      auto read = UnmetDependencies(database);
                      if (read.ok()) unmet = *std::move(read);
                      return read.status();
                    })
                    .ok());
    return unmet;
  }
  absl::Status MayRunStart(const std::string& run) {
    return runs_.store().Read(
        [&](Database& database) { return MayStart(database, *ReadRun(database, run)); });
  }
  // Ends a run as if it had been trained.
  void End(const std::string& run, v1::Run::State state) {
    runs_.SetState(run, v1::Run::STATE_STARTING);
    if (state == v1::Run::STATE_CANCELLED) runs_.SetState(run, v1::Run::STATE_CANCELLING);
    runs_.SetState(run, state);
    ASSERT_EQ(runs_.Read(run).state(), state);
  }

  fakes::StoredRuns runs_;
};

TEST_F(DependenciesTest, OkIsMetByASuccessAlone) {
  const std::string first = Add("first");
  const std::string second = Add("second", {{first, "ok"}});
  const auto unmet = Unmet();
  ASSERT_THAT(unmet, ElementsAre(Key(second)));
  EXPECT_EQ(unmet.at(second)[0].run, first);
  EXPECT_EQ(unmet.at(second)[0].name, "first");
  EXPECT_THAT(MayRunStart(second).message(), HasSubstr(first));
  runs_.SetState(first, v1::Run::STATE_STARTING);
  EXPECT_THAT(Unmet(), SizeIs(1));
  runs_.SetState(first, v1::Run::STATE_SUCCEEDED);
  EXPECT_THAT(Unmet(), IsEmpty());
  EXPECT_TRUE(MayRunStart(second).ok());
  EXPECT_EQ(runs_.Read(second).state(), v1::Run::STATE_QUEUED);
}

TEST_F(DependenciesTest, EveryOtherEndCancelsTheWholeChainAndSaysWhy) {
  const struct {
    v1::Run::State state;
    std::string words;
  } ends[] = {{v1::Run::STATE_FAILED, "has failed"},
              {v1::Run::STATE_DIVERGED, "has diverged"},
              {v1::Run::STATE_TIMED_OUT, "has timed out"},
              {v1::Run::STATE_CANCELLED, "was cancelled"}};
  for (const auto& end : ends) {
    const std::string first = Add("first");
    const std::string second = Add("second", {{first, ""}});
    const std::string third = Add("third", {{second, "ok"}});
    const std::string patient = Add("patient", {{first, "any"}, {third, "any"}});
    End(first, end.state);
    const v1::Run cancelled = runs_.Read(second);
    EXPECT_EQ(cancelled.state(), v1::Run::STATE_CANCELLED);
    EXPECT_EQ(cancelled.end_reason(),
              StrCat("run first (", first, "), after which it was to start, ", end.words));
    EXPECT_TRUE(cancelled.has_end_time());
    EXPECT_EQ(runs_.Read(third).state(), v1::Run::STATE_CANCELLED);
    EXPECT_EQ(runs_.Read(third).end_reason(),
              StrCat("run second (", second, "), after which it was to start, was cancelled"));
    EXPECT_EQ(runs_.Read(patient).state(), v1::Run::STATE_QUEUED);
    EXPECT_TRUE(MayRunStart(patient).ok());
  }
}

TEST_F(DependenciesTest, APausedRunIsCancelledAndAChainMayBeLong) {
  const std::string first = Add("first");
  std::vector<std::string> chain;
  const auto add_chain = [&](WriteContext& context) -> absl::Status {
    std::string last = first;
    for (int i = 0; i < 3000; ++i) {
      v1::Run run = runs_.MakeRun();
      run.add_after()->set_run(last);
      if (absl::Status status = InsertRun(context, run); !status.ok()) return status;
      chain.push_back(last = run.id());
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(Write(add_chain).ok());
  runs_.SetState(chain[0], v1::Run::STATE_PAUSED);
  runs_.published().clear();
  runs_.SetState(first, v1::Run::STATE_CANCELLED);
  for (const std::string& run : chain) {
    ASSERT_EQ(runs_.Read(run).state(), v1::Run::STATE_CANCELLED);
  }
  // Each told once, with its end: the whole chain went in one piece.
  ASSERT_THAT(runs_.published(), SizeIs(2 * 3001));
  EXPECT_EQ(runs_.published().front()->sequence(), runs_.published().back()->sequence());
}

TEST_F(DependenciesTest, ADeletedRunCountsAsEnded) {
  const std::string first = Add("first");
  const std::string second = Add("second", {{first, "any"}});
  End(first, v1::Run::STATE_FAILED);
  ASSERT_TRUE(Write([&](WriteContext& context) { return DeleteRun(context, first); }).ok());
  EXPECT_THAT(Unmet(), IsEmpty());
  EXPECT_TRUE(MayRunStart(second).ok());
  EXPECT_EQ(runs_.Read(second).after_size(), 1);
}

TEST_F(DependenciesTest, CyclesAreRefusedByName) {
  const std::string a = Add("a");
  const std::string b = Add("b", {{a, "ok"}});
  const std::string c = Add("c", {{b, "any"}});
  const absl::Status refused = ChangeAfter(a, After({{c, "ok"}}));
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  const auto violations = domain::Violations(refused);
  ASSERT_THAT(violations, SizeIs(1));
  EXPECT_EQ(violations[0].field, "after[0].run");
  EXPECT_THAT(violations[0].description,
              HasSubstr(StrCat("c (", c, ") after b (", b, ") after a (", a, ") after c")));
  EXPECT_EQ(runs_.Read(a).after_size(), 0);
  EXPECT_TRUE(ChangeAfter(c, After({{a, "ok"}, {b, "ok"}})).ok());
  EXPECT_EQ(runs_.Read(c).after_size(), 2);
}

TEST_F(DependenciesTest, WhatCannotBeIsRefusedByField) {
  const std::string a = Add("a");
  const std::string failed = Add("failed");
  End(failed, v1::Run::STATE_FAILED);
  const std::string unknown = runs_.MakeRun().id();
  const absl::Status refused = ChangeAfter(a, After({{a, "ok"},
                                                     {"", "ok"},
                                                     {unknown, "ok"},
                                                     {failed, "ok"},
                                                     {failed, "maybe"},
                                                     {failed, "any"},
                                                     {"smoke", "any"}}));
  const std::vector<domain::FieldViolation> wrong = domain::Violations(refused);
  ASSERT_THAT(wrong, SizeIs(7));
  EXPECT_THAT(wrong[0].description, HasSubstr("itself"));
  EXPECT_THAT(wrong[1].description, HasSubstr("missing"));
  EXPECT_THAT(wrong[2].description, HasSubstr(unknown));
  EXPECT_THAT(wrong[3].description, HasSubstr("retry it first, or use the condition any"));
  EXPECT_EQ(wrong[4].field, "after[4].condition");
  EXPECT_THAT(wrong[5].description, HasSubstr("twice"));
  EXPECT_THAT(wrong[6].description, HasSubstr("whole id"));
}

TEST_F(DependenciesTest, ARunCancelledWithItsCauseComesBackOnlyAfterIt) {
  const std::string first = Add("first");
  const std::string second = Add("second", {{first, "ok"}});
  End(first, v1::Run::STATE_DIVERGED);
  const auto possible = [&] {
    return runs_.store().Read(
        [&](Database& database) { return CheckStillPossible(database, second); });
  };
  EXPECT_THAT(possible().message(), HasSubstr("has diverged; retry that one first"));
  runs_.SetState(first, v1::Run::STATE_QUEUED);
  EXPECT_TRUE(possible().ok());
}

}  // namespace
}  // namespace normlab::storage
