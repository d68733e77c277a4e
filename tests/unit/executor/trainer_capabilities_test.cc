#include "server/executor/trainer_capabilities.h"

#include <sys/stat.h>

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"

namespace normlab::executor {
namespace {

using ::testing::HasSubstr;

class TrainerCapabilitiesTest : public ::testing::Test {
 protected:
  absl::StatusOr<TrainerCapabilities> Ask(const std::string& script,
                                          std::chrono::milliseconds timeout) {
    const std::filesystem::path path = dir_.path() / "trainer";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    chmod(path.c_str(), 0700);
    return AskTrainer(path, timeout);
  }
  absl::StatusOr<TrainerCapabilities> Ask(const std::string& script) {
    return Ask(script, std::chrono::seconds(60));
  }

  fakes::TempDir dir_;
};

TEST_F(TrainerCapabilitiesTest, ATrainerSaysOnHowManyGpusItTrains) {
  EXPECT_EQ(Ask(R"([ "$1" = --capabilities ] && echo '{"gpus": 2, "later": []}')")->gpus, 2);
  EXPECT_EQ(Ask(R"([ -z "$CUDA_VISIBLE_DEVICES" ] && echo '{"gpus": 0}')")->gpus, 0);
}

TEST_F(TrainerCapabilitiesTest, OneThatSaysSomethingElseIsQuoted) {
  EXPECT_THAT(Ask("echo what is --capabilities?").status().message(),
              HasSubstr("it does not say what it can do: what is --capabilities?"));
  EXPECT_THAT(Ask("exit 2").status().message(), HasSubstr("it does not say what it can do"));
  EXPECT_THAT(Ask(R"(echo '{"gpus": "all"}')").status().message(), HasSubstr(R"({"gpus": "all"})"));
  EXPECT_THAT(Ask("exec cat /dev/zero").status().message(), HasSubstr("has no end"));
}

TEST_F(TrainerCapabilitiesTest, OneThatIsNotThereOrNeverAnswersIsAnError) {
  EXPECT_THAT(AskTrainer("/nowhere/trainer", std::chrono::seconds(60)).status().message(),
              HasSubstr("/nowhere/trainer"));
  EXPECT_THAT(Ask("exec sleep 600", std::chrono::milliseconds(50)).status().message(),
              HasSubstr("did not answer in time"));
}

}  // namespace
}  // namespace normlab::executor
