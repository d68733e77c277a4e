// normlab user, login, logout and audit, as whole command lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "client/endpoint.h"
#include "client/login_file.h"
#include "client/program.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/client/fake_server.h"

namespace normlab::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class UserCommandsTest : public testing::Test {
 protected:
  UserCommandsTest() {
    ::unsetenv("NORMLAB_SERVER");
    ::unsetenv("NORMLAB_TOKEN");
    ::setenv("NORMLAB_DATA_DIR", server_.data_dir().c_str(), 1);
    ::setenv("XDG_CONFIG_HOME", folder_.path().c_str(), 1);
  }
  ~UserCommandsTest() override { ::unsetenv("XDG_CONFIG_HOME"); }

  int Normlab(const std::vector<std::string>& arguments) {
    out_.clear();
    err_.clear();
    Terminal::Traits traits;
    traits.out = [this](std::string_view bytes) { out_ += bytes; };
    traits.err = [this](std::string_view bytes) { err_ += bytes; };
    Terminal terminal(std::move(traits));
    return RunProgram(arguments, terminal);
  }
  std::string Path(const std::string& name) const { return (folder_.path() / name).string(); }
  static std::string Content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static unsigned Mode(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
  }

  fakes::TempDir folder_;
  FakeServer server_;
  std::string out_, err_;
};

TEST_F(UserCommandsTest, ANewUsersTokenGoesToAFileForTheCallerAlone) {
  EXPECT_EQ(Normlab({"user", "add", "ada", "--role", "member", "--max-running", "2",
                     "--max-gpu-memory", "8GiB", "--token-file", Path("ada.token")}),
            0)
      << err_;
  ASSERT_EQ(server_.users_made.size(), 1u);
  const v1::User& user = server_.users_made[0].user();
  EXPECT_EQ(user.name(), "ada");
  EXPECT_EQ(user.role(), "member");
  EXPECT_EQ(user.limits().running(), 2);
  EXPECT_EQ(user.limits().gpu_memory_bytes(), int64_t{8} << 30);
  EXPECT_EQ(Content(Path("ada.token")), "token-of-ada\n");
  EXPECT_EQ(Mode(Path("ada.token")), 0600u);
  EXPECT_THAT(out_ + err_, Not(HasSubstr("token-of-ada")));
  // Nobody's token is written over, and no user is made whose token would be lost.
  EXPECT_EQ(Normlab({"user", "add", "bob", "--role", "viewer", "--token-file", Path("ada.token")}),
            4);
  EXPECT_THAT(err_, HasSubstr("is there already"));
  EXPECT_EQ(Normlab({"user", "add", "bob", "--role", "viewer"}), 2);
  EXPECT_THAT(err_, HasSubstr("--print-token"));
  EXPECT_EQ(server_.users_made.size(), 1u);
}

TEST_F(UserCommandsTest, ATokenIsPrintedWhenAsked) {
  EXPECT_EQ(Normlab({"user", "add", "ada", "--role", "viewer", "--print-token"}), 0);
  EXPECT_EQ(out_, "token-of-ada\n");
  EXPECT_EQ(Normlab({"user", "rotate", "--print-token", "--json"}), 0);
  EXPECT_EQ(nlohmann::json::parse(out_)["token"], "new-token");
  EXPECT_THAT(server_.rotated, ElementsAre(""));
  EXPECT_EQ(Normlab({"user", "rotate", "ada", "--token-file", Path("new"), "--json"}), 0);
  EXPECT_EQ(out_, "{}\n");
  EXPECT_EQ(Content(Path("new")), "new-token\n");
}

TEST_F(UserCommandsTest, OnlyWhatIsGivenIsChanged) {
  EXPECT_EQ(Normlab({"user", "set", "ada", "--max-queued", "0"}), 0) << err_;
  ASSERT_EQ(server_.users_changed.size(), 1u);
  EXPECT_THAT(server_.users_changed[0].update_mask().paths(), ElementsAre("limits.queued"));
  EXPECT_EQ(Normlab({"user", "set", "ada"}), 2);
  EXPECT_EQ(Normlab({"user", "set", "ada", "--role", "king"}), 2);
  EXPECT_EQ(Normlab({"user", "set", "ada", "--max-gpu-memory", "much"}), 2);
  EXPECT_EQ(server_.users_changed.size(), 1u);
}

TEST_F(UserCommandsTest, UsersAreListedAndRemoved) {
  EXPECT_EQ(Normlab({"user", "ls"}), 0);
  EXPECT_EQ(out_,
            "name\trole\tmax running\tmax queued\tmax GPU memory\t\n"
            "ada\tmember\t-\t-\t8.0 GiB\t\n");
  EXPECT_EQ(Normlab({"user", "ls", "--removed", "--json"}), 0);
  EXPECT_THAT(out_, HasSubstr("\"removed\":true"));
  EXPECT_EQ(Normlab({"user", "rm", "ada", "--yes"}), 0);
  EXPECT_THAT(server_.users_removed, ElementsAre("ada"));
}

TEST_F(UserCommandsTest, EveryUserCommandHasHelpWithExamples) {
  for (const char* command : {"add", "ls", "set", "rotate", "rm"}) {
    EXPECT_EQ(Normlab({"user", command, "--help"}), 0) << command;
    EXPECT_THAT(out_, HasSubstr("Examples:")) << command;
  }
  EXPECT_EQ(Normlab({"user", "add", "ada", "--rolle", "member"}), 2);
  EXPECT_THAT(err_, HasSubstr("did you mean --role?"));
  EXPECT_THAT(err_, HasSubstr("normlab user add --help"));
  EXPECT_EQ(Normlab({"completion", "bash"}), 0);
  EXPECT_THAT(out_, HasSubstr("add ls set rotate rm --"));
}

TEST_F(UserCommandsTest, TheAuditIsReadPageByPage) {
  EXPECT_EQ(Normlab({"audit", "--limit", "1200", "--user", "ada", "--json"}), 0) << err_;
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 1200);
  ASSERT_EQ(server_.audit_asked.size(), 2u);
  EXPECT_EQ(server_.audit_asked[1].page_size(), 200);
  EXPECT_EQ(server_.audit_asked[1].user(), "ada");
  EXPECT_EQ(Normlab({"audit", "-n", "0", "--json"}), 0);
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 1500);
  EXPECT_EQ(Normlab({"audit", "-n", "1"}), 0);
  EXPECT_THAT(out_, HasSubstr("ada\tcancel\t01J0000000AAAAAAAAAAAAAAAA\trunning -> cancelling\t"
                              "unix socket"));
  // A deleted run has no row any more; its whole id is enough.
  EXPECT_EQ(Normlab({"audit", "--run", "01J0000000ZZZZZZZZZZZZZZZZ"}), 0) << err_;
  EXPECT_EQ(server_.audit_asked.back().run(), "01J0000000ZZZZZZZZZZZZZZZZ");
}

// --- login ---

TEST_F(UserCommandsTest, ALoginIsKeptForThisAccountAndForgottenAgain) {
  std::ofstream(Path("token")) << FakeServer::kToken << "\n";
  const std::string address = "unix:" + ReadEndpointFile(server_.data_dir())->socket;
  EXPECT_EQ(Normlab({"login", address, "--token-file", Path("token")}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("as owner (admin)"));
  EXPECT_THAT(out_ + err_, Not(HasSubstr(FakeServer::kToken)));
  EXPECT_EQ(Mode(LoginFile().string()), 0600u);
  // A data folder that is named goes before it.
  EXPECT_EQ(FindEndpoint("", server_.data_dir().string())->socket,
            ReadEndpointFile(server_.data_dir())->socket);
  ::unsetenv("NORMLAB_DATA_DIR");
  EXPECT_EQ(FindEndpoint("", "")->target, address);
  EXPECT_EQ(FindEndpoint(address, "")->token, FakeServer::kToken);
  // The token goes to no other server.
  EXPECT_FALSE(FindEndpoint("elsewhere:1", "").ok());
  EXPECT_EQ(Normlab({"user", "ls"}), 0) << err_;
  EXPECT_EQ(Normlab({"logout"}), 0);
  EXPECT_TRUE(absl::IsNotFound(ReadLogin().status()));
  EXPECT_EQ(Normlab({"logout"}), 0);
  EXPECT_THAT(out_, HasSubstr("not logged in"));
}

TEST_F(UserCommandsTest, AWrongTokenIsNotKept) {
  std::ofstream(Path("token")) << "another\n";
  const std::string address = "unix:" + ReadEndpointFile(server_.data_dir())->socket;
  EXPECT_EQ(Normlab({"login", address, "--token-file", Path("token")}), 4);
  EXPECT_TRUE(absl::IsNotFound(ReadLogin().status()));
  EXPECT_EQ(Normlab({"login", "nowhere", "--token-file", Path("token")}), 2);
  EXPECT_EQ(Normlab({"login", address, "--token-file", Path("none")}), 4);
}

TEST_F(UserCommandsTest, ALoginThatOthersCanReadIsRefused) {
  ASSERT_TRUE(WriteLogin({"127.0.0.1:1", "secret"}).ok());
  std::filesystem::permissions(LoginFile(), std::filesystem::perms(0644));
  EXPECT_TRUE(absl::IsPermissionDenied(ReadLogin().status()));
  ::unsetenv("NORMLAB_DATA_DIR");
  EXPECT_TRUE(absl::IsPermissionDenied(FindEndpoint("", "").status()));
}

}  // namespace
}  // namespace normlab::client
