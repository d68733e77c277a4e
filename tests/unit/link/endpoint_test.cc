#include "server/trainer/link/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace normlab::trainer {
namespace {

using testing::ElementsAre;

class EndpointTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  absl::StatusOr<std::vector<std::string>> Read(const std::string& content) {
    std::ofstream(path_) << content;
    return ReadTargets(path_);
  }
  const std::filesystem::path path_ =
      testing::TempDir() + "endpoint-" + std::to_string(getpid()) + ".json";
};

TEST_F(EndpointTest, WithASocketThePortIsNotTried) {
  EXPECT_THAT(*Read(R"({"http": "127.0.0.1:1", "grpc": "127.0.0.1:8711", "socket": "/run/s",
                        "pid": 5, "start_time": "x", "token": "t"})"),
              ElementsAre("unix:/run/s"));
}

TEST_F(EndpointTest, SocketTooLongForTheKernelIsLeftOut) {
  const std::string longest(107, 's');
  EXPECT_THAT(*Read("{\"grpc\": \"h:1\", \"socket\": \"" + longest + "\"}"),
              ElementsAre("unix:" + longest));
  EXPECT_THAT(*Read("{\"grpc\": \"h:1\", \"socket\": \"" + longest + "s\"}"), ElementsAre("h:1"));
}

TEST_F(EndpointTest, WithoutAServerThereIsNoFile) {
  EXPECT_EQ(ReadTargets(path_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(EndpointTest, NonsenseIsAnError) {
  for (const char* text : {"", "{", "[]", "{}", R"({"grpc": 8711, "socket": null})"}) {
    EXPECT_EQ(Read(text).status().code(), absl::StatusCode::kDataLoss) << text;
  }
}

}  // namespace
}  // namespace normlab::trainer
