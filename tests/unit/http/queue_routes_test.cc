// Routes that change what waits in the queue.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/http/http_client.h"

namespace normlab::http {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class QueueRoutesTest : public HttpTest {};

v1::Run Named(const std::string& id) {
  v1::Run run;
  run.set_id(id);
  return run;
}

TEST_F(QueueRoutesTest, HoldAndReleaseNeedNoBody) {
  std::string held, released;
  api_.hold_run = [&](const v1::HoldRunRequest& request) { return Named(held = request.id()); };
  api_.release_run = [&](const v1::ReleaseRunRequest& request) {
    return Named(released = request.id());
  };
  EXPECT_EQ(Fetch("POST", "/api/v1/runs/01J8:hold").json()["id"], "01J8");
  EXPECT_EQ(Fetch("POST", "/api/v1/runs/01J9:release", "{}").json()["id"], "01J9");
  EXPECT_EQ(held, "01J8");
  EXPECT_EQ(released, "01J9");
  EXPECT_EQ(Fetch("GET", "/api/v1/runs/01J8:hold").status, 405);
}

TEST_F(QueueRoutesTest, MoveTakesOnePlace) {
  v1::MoveRunRequest seen;
  api_.move_run = [&](const v1::MoveRunRequest& request) {
    seen = request;
    return Named(request.id());
  };
  EXPECT_EQ(Fetch("POST", "/api/v1/runs/01J8:move", R"({"first":true})").status, 200);
  EXPECT_TRUE(seen.first());
  EXPECT_EQ(Fetch("POST", "/api/v1/runs/01J8:move", R"({"behind":"01J9"})").status, 200);
  EXPECT_EQ(seen.id(), "01J8");
  EXPECT_EQ(seen.behind(), "01J9");
  EXPECT_EQ(Fetch("POST", "/api/v1/runs/01J8:move", R"({"first":true,"last":true})").status, 400);
  const Response wrong = Fetch("POST", "/api/v1/runs/01J8:move", R"({"frist":true})");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(wrong.body, HasSubstr("did you mean first?"));
}

TEST_F(QueueRoutesTest, PatchChangesPriorityAndAfter) {
  v1::UpdateRunRequest seen;
  api_.update_run = [&](const v1::UpdateRunRequest& request) {
    seen = request;
    return request.run();
  };
  EXPECT_EQ(Fetch("PATCH", "/api/v1/runs/01J8",
                  R"({"priority":"low","after":[{"run":"01J9","condition":"any"}]})")
                .status,
            200);
  EXPECT_THAT(seen.update_mask().paths(), UnorderedElementsAre("priority", "after"));
  EXPECT_EQ(seen.run().after(0).condition(), "any");
  EXPECT_EQ(Fetch("PATCH", "/api/v1/runs/01J8", R"({"after":[]})").status, 200);
  EXPECT_THAT(seen.update_mask().paths(), UnorderedElementsAre("after"));
  EXPECT_EQ(seen.run().after_size(), 0);
}

TEST_F(QueueRoutesTest, AnExperimentHasDefaultsForItsRuns) {
  v1::CreateExperimentRequest seen;
  api_.create_experiment = [&](const v1::CreateExperimentRequest& request) {
    seen = request;
    return request.experiment();
  };
  const Response response =
      Fetch("POST", "/api/v1/experiments?validate_only=true",
            R"({"preset":"article","priority":"low","held":true,"after":[{"run":"01J9"}],)"
            R"("resources":{"gpus":2,"gpuMemoryBytes":"8589934592"},"overrides":{"steps":5}})");
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_TRUE(seen.validate_only());
  EXPECT_EQ(seen.experiment().preset(), "article");
  EXPECT_EQ(seen.priority(), "low");
  EXPECT_TRUE(seen.held());
  EXPECT_EQ(seen.after(0).run(), "01J9");
  EXPECT_EQ(seen.resources().gpu_memory_bytes(), int64_t{8} << 30);
  EXPECT_EQ(seen.overrides().steps(), 5);
  EXPECT_EQ(Fetch("POST", "/api/v1/experiments?dry_run=true", "{}").status, 400);
}

TEST_F(QueueRoutesTest, AnExperimentIsCancelled) {
  api_.cancel_experiment = [&](const v1::CancelExperimentRequest& request) {
    v1::Experiment experiment;
    experiment.set_id(request.id());
    experiment.add_runs()->set_state(v1::Run::STATE_CANCELLING);
    return experiment;
  };
  const Response response = Fetch("POST", "/api/v1/experiments/01JE:cancel");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.json()["id"], "01JE");
  EXPECT_EQ(response.json()["runs"][0]["state"], "STATE_CANCELLING");
}

}  // namespace
}  // namespace normlab::http
