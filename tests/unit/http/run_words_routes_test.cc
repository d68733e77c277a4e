// Routes that list, describe and delete runs.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/http/http_client.h"

namespace normlab::http {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class RunWordsRoutesTest : public HttpTest {};

TEST_F(RunWordsRoutesTest, ListRunsPassesFilterAndOrderOn) {
  v1::ListRunsRequest seen;
  api_.list_runs = [&](const v1::ListRunsRequest& request) {
    seen = request;
    v1::ListRunsResponse response;
    response.set_total_size(7);
    return response;
  };
  const Response response = Fetch(
      "GET", "/api/v1/runs?filter=loss%3C0.1%20%22a%2C%20b%22&order_by=final_loss%20desc,layers");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.json()["totalSize"], "7");
  EXPECT_EQ(seen.filter(), "loss<0.1 \"a, b\"");
  EXPECT_EQ(seen.order_by(), "final_loss desc,layers");
}

TEST_F(RunWordsRoutesTest, UpdateRunChangesTheFieldsThatAreThere) {
  v1::UpdateRunRequest seen;
  api_.update_run = [&](const v1::UpdateRunRequest& request) {
    seen = request;
    return request.run();
  };
  const Response response =
      Fetch("PATCH", "/api/v1/runs/01J8", R"({"id":"x","displayName":"a","pinned":false})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(seen.run().id(), "01J8");
  EXPECT_EQ(seen.run().display_name(), "a");
  EXPECT_THAT(seen.update_mask().paths(), UnorderedElementsAre("display_name", "pinned"));
  Fetch("PATCH", "/api/v1/runs/01J8?update_mask=labels", R"({"labels":["a"],"notes":"n"})");
  EXPECT_THAT(seen.update_mask().paths(), ElementsAre("labels"));
  EXPECT_THAT(seen.run().labels(), ElementsAre("a"));
}

TEST_F(RunWordsRoutesTest, UpdateRunNeedsABodyThatIsARun) {
  EXPECT_EQ(Fetch("PATCH", "/api/v1/runs/01J8", "").status, 400);
  const Response response = Fetch("PATCH", "/api/v1/runs/01J8", R"({"lables":["a"]})");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("did you mean labels?"));
}

TEST_F(RunWordsRoutesTest, DeleteRunAnswersAnEmptyObject) {
  std::string seen;
  api_.delete_run = [&](const v1::DeleteRunRequest& request) {
    seen = request.id();
    return seen == "01J8" ? absl::OkStatus() : absl::FailedPreconditionError("it is pinned");
  };
  const Response response = Fetch("DELETE", "/api/v1/runs/01J8");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "{}");
  EXPECT_EQ(seen, "01J8");
  EXPECT_EQ(Fetch("DELETE", "/api/v1/runs/01J9").json()["error"]["status"], "FAILED_PRECONDITION");
}

TEST_F(RunWordsRoutesTest, PruneRuns) {
  v1::PruneRunsRequest seen;
  api_.prune_runs = [&](const v1::PruneRunsRequest& request) {
    seen = request;
    v1::PruneRunsResponse response;
    response.set_runs(3);
    return response;
  };
  const Response response =
      Fetch("POST", "/api/v1/runs:prune", R"({"filter":"state=failed","validateOnly":true})");
  EXPECT_EQ(response.json()["runs"], "3");
  EXPECT_EQ(seen.filter(), "state=failed");
  EXPECT_TRUE(seen.validate_only());
}

}  // namespace
}  // namespace normlab::http
