// Routes of users and of the audit.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/http/http_client.h"

namespace normlab::http {
namespace {

using ::testing::MatchesRegex;
using ::testing::UnorderedElementsAre;

class UserRoutesTest : public HttpTest {};

TEST_F(UserRoutesTest, CreateUserTakesTheUserItself) {
  v1::CreateUserRequest seen;
  api_.create_user = [&](const v1::CreateUserRequest& request) {
    seen = request;
    v1::CreateUserResponse response;
    response.set_token("secret");
    return response;
  };
  const Response response =
      Fetch("POST", "/api/v1/users", R"({"name":"ada","role":"member","limits":{"queued":"7"}})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.json()["token"], "secret");
  EXPECT_EQ(seen.user().name(), "ada");
  EXPECT_EQ(seen.user().limits().queued(), 7);
}

TEST_F(UserRoutesTest, UpdateUserChangesTheFieldsThatAreThereAlsoToNothing) {
  v1::UpdateUserRequest seen;
  api_.update_user = [&](const v1::UpdateUserRequest& request) {
    seen = request;
    return request.user();
  };
  EXPECT_EQ(Fetch("PATCH", "/api/v1/users/a.b-c_d",
                  R"({"name":"x","role":"admin","limits":{"gpuMemoryBytes":"0","running":3}})")
                .status,
            200);
  EXPECT_EQ(seen.user().name(), "a.b-c_d");
  EXPECT_EQ(seen.user().limits().running(), 3);
  EXPECT_THAT(seen.update_mask().paths(),
              UnorderedElementsAre("role", "limits.gpu_memory_bytes", "limits.running"));
  EXPECT_EQ(Fetch("PATCH", "/api/v1/users/ada", R"({"limits":{"speed":1}})").status, 400);
}

TEST_F(UserRoutesTest, UsersAreListedRemovedAndTheirTokensReplaced) {
  bool removed_too = false;
  api_.list_users = [&](const v1::ListUsersRequest& request) {
    removed_too = request.show_removed();
    v1::ListUsersResponse response;
    response.add_users()->set_name("ada");
    return response;
  };
  EXPECT_EQ(Fetch("GET", "/api/v1/users?show_removed=true").json()["users"][0]["name"], "ada");
  EXPECT_TRUE(removed_too);
  std::string gone, rotated;
  api_.delete_user = [&](const v1::DeleteUserRequest& request) {
    gone = request.name();
    return absl::OkStatus();
  };
  EXPECT_EQ(Fetch("DELETE", "/api/v1/users/ada").body, "{}");
  EXPECT_EQ(gone, "ada");
  api_.rotate_token = [&](const v1::RotateTokenRequest& request) {
    rotated = request.name();
    return v1::RotateTokenResponse();
  };
  EXPECT_EQ(Fetch("POST", "/api/v1/users/ada:rotate", "").status, 200);
  EXPECT_EQ(rotated, "ada");
}

TEST_F(UserRoutesTest, TheAuditIsAskedWithTheQueryAndTheCallersAddressIsKnown) {
  v1::ListAuditEventsRequest seen;
  api_.list_audit_events = [&](const v1::ListAuditEventsRequest& request) {
    seen = request;
    return v1::ListAuditEventsResponse();
  };
  EXPECT_EQ(Fetch("GET", "/api/v1/audit?run=01J8&user=ada&page_size=7&page_token=9").status, 200);
  EXPECT_EQ(seen.run(), "01J8");
  EXPECT_EQ(seen.user(), "ada");
  EXPECT_EQ(seen.page_size(), 7);
  EXPECT_EQ(seen.page_token(), "9");
  EXPECT_THAT(api_.latest_origin, MatchesRegex("127\\.0\\.0\\.1:[0-9]+"));
}

}  // namespace
}  // namespace normlab::http
