#include "server/app/run_files.h"

#include <sys/stat.h>

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"

namespace normlab::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RunFilesTest : public ::testing::Test {
 protected:
  void Put(const std::filesystem::path& path, const std::string& content) {
    std::filesystem::create_directories((dir_.path() / path).parent_path());
    std::ofstream(dir_.path() / path) << content;
  }
  static v1::RunSpec Spec(const std::string& data, const std::string& init_from) {
    v1::RunSpec spec;
    spec.set_data(data);
    spec.set_init_from(init_from);
    return spec;
  }
  std::string WhyNoText(const std::string& name) {
    const absl::Status status = files_.FindText(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    return std::string(status.message());
  }

  const fakes::TempDir dir_;
  const RunFiles files_{dir_.path() / "data", dir_.path() / "shipped"};
};

TEST_F(RunFilesTest, OnesOwnTextComesBeforeTheShippedOne) {
  Put("shipped/tale.txt", "theirs");
  EXPECT_EQ(*files_.FindText("tale"), dir_.path() / "shipped/tale.txt");
  EXPECT_EQ(*files_.FindText("tale.txt"), dir_.path() / "shipped/tale.txt");
  Put("data/texts/tale", "ours");
  EXPECT_EQ(*files_.FindText("tale"), dir_.path() / "data/texts/tale");
  EXPECT_EQ(files_.TextFile(Spec("text:tale", "none")), dir_.path() / "data/texts/tale");
  EXPECT_EQ(files_.TextFile(Spec("arithmetic", "none")), "");
  EXPECT_EQ(files_.TextFile(Spec("text:gone", "none")), dir_.path() / "data/texts/gone")
      << "the trainer says what is wrong with it";
}

TEST_F(RunFilesTest, AMissingTextIsToldWithThoseThereAre) {
  EXPECT_THAT(WhyNoText("tale"), HasSubstr("there are none yet"));
  Put("shipped/alice.txt", "x");
  Put("data/texts/mine.md", "x");
  Put("data/texts/.hidden", "x");
  Put("data/texts/empty.txt", "");
  EXPECT_THAT(WhyNoText("tale"), HasSubstr("there is no text tale"));
  EXPECT_THAT(WhyNoText("tale"), HasSubstr("alice, empty, mine.md"));
  EXPECT_THAT(WhyNoText("tale"), Not(HasSubstr("hidden")));
  EXPECT_THAT(WhyNoText("empty"), HasSubstr("is empty"));
}

TEST_F(RunFilesTest, NoNameLeadsOutOfItsFolder) {
  Put("data/owner-token", "secret");
  Put("data/texts/tale.txt", "x");
  Put("data/w.safetensors", "x");
  for (const char* name : {"../owner-token", "/etc/passwd", "..", ".", "", "a/b", "tale.txt\n"}) {
    EXPECT_THAT(WhyNoText(name), HasSubstr("plain name")) << name;
  }
  EXPECT_THAT(std::string(files_.FindWeights("../w.safetensors").status().message()),
              HasSubstr("plain name"));
}

TEST_F(RunFilesTest, WeightsAreSafetensorsOfTheWeightsFolder) {
  Put("data/weights/big.safetensors", "x");
  Put("data/weights/notes.txt", "x");
  EXPECT_TRUE(RunFiles::NamesFile("big.safetensors"));
  EXPECT_FALSE(RunFiles::NamesFile("01J8"));
  EXPECT_EQ(*files_.FindWeights("big.safetensors"), dir_.path() / "data/weights/big.safetensors");
  const std::string why(files_.FindWeights("small.safetensors").status().message());
  EXPECT_THAT(why, HasSubstr("there is: big.safetensors"));
  EXPECT_THAT(why, Not(HasSubstr("notes")));
  EXPECT_EQ(files_.InitFile("RUN", Spec("copy", "big.safetensors")),
            dir_.path() / "data/weights/big.safetensors");
  EXPECT_EQ(files_.InitFile("RUN", Spec("copy", "none")), "");
}

TEST_F(RunFilesTest, ACheckpointThatWasKeptSurvivesItsRemoval) {
  Put("data/x", "");
  std::filesystem::permissions(dir_.path() / "data", std::filesystem::perms::owner_all);
  ASSERT_TRUE(files_.MakeCheckpoints("SOURCE").ok());
  struct stat info;
  ASSERT_EQ(stat(files_.Checkpoints("SOURCE").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 077, 0u);
  const std::filesystem::path checkpoint = files_.Checkpoints("SOURCE") / "step-1.safetensors";
  std::ofstream(checkpoint) << "weights";
  ASSERT_TRUE(files_.KeepInit("TARGET", checkpoint).ok());
  std::filesystem::remove(checkpoint);
  std::string kept;
  std::ifstream(files_.InitFile("TARGET", Spec("copy", "SOURCE"))) >> kept;
  EXPECT_EQ(kept, "weights");
  files_.DropInit("TARGET");
  EXPECT_FALSE(std::filesystem::exists(dir_.path() / "data/runs/TARGET"));
  EXPECT_EQ(files_.KeepInit("OTHER", checkpoint).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace normlab::app
