// The commands about the queue, as whole command lines against a scripted server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "client/program.h"
#include "client/queue_flags.h"
#include "tests/unit/client/fake_server.h"

namespace normlab::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kPre[] = "01J0000000AAAAAAAAAAAAAAAA";
constexpr char kPost[] = "01J0000000BBBBBBBBBBBBBBBB";

class QueueCommandsTest : public testing::Test {
 protected:
  QueueCommandsTest() {
    ::unsetenv("NORMLAB_SERVER");
    ::unsetenv("NORMLAB_TOKEN");
    ::setenv("NORMLAB_DATA_DIR", server_.data_dir().c_str(), 1);
    for (const auto& [id, name] : {std::pair{kPre, "pre"}, {kPost, "post:any"}}) {
      v1::Run& run = server_.runs.emplace_back();
      run.set_id(id);
      run.set_display_name(name);
      run.set_state(v1::Run::STATE_QUEUED);
    }
  }

  int Normlab(const std::vector<std::string>& arguments) {
    out_.clear();
    err_.clear();
    Terminal::Traits traits;
    traits.out = [this](std::string_view bytes) { out_ += bytes; };
    traits.err = [this](std::string_view bytes) { err_ += bytes; };
    Terminal terminal(std::move(traits));
    return RunProgram(arguments, terminal);
  }

  FakeServer server_;
  std::string out_, err_;
};

TEST_F(QueueCommandsTest, SubmitSaysWhatItWantsOfTheQueue) {
  ASSERT_EQ(
      Normlab({"submit", "--priority", "low", "--hold", "--after", "pre", "--after",
               std::string(kPost) + ":any", "--gpus", "2", "--gpu-memory", "8GiB", "--exclusive"}),
      0)
      << err_;
  ASSERT_THAT(server_.created, SizeIs(1));
  const v1::Run& run = server_.created[0].run();
  EXPECT_EQ(run.priority(), "low");
  EXPECT_TRUE(run.held());
  ASSERT_EQ(run.after_size(), 2);
  EXPECT_EQ(run.after(0).run(), kPre);
  EXPECT_EQ(run.after(0).condition(), "");
  EXPECT_EQ(run.after(1).run(), kPost);
  EXPECT_EQ(run.after(1).condition(), "any");
  EXPECT_EQ(run.resources().gpus(), 2);
  EXPECT_EQ(run.resources().gpu_memory_bytes(), int64_t{8} << 30);
  EXPECT_TRUE(run.resources().exclusive());
}

TEST_F(QueueCommandsTest, WithoutAWordAboutResourcesNoneAreSent) {
  ASSERT_EQ(Normlab({"submit"}), 0);
  EXPECT_FALSE(server_.created[0].run().has_resources());
}

TEST_F(QueueCommandsTest, AWrongSizeOrAnUnknownRunSubmitsNothing) {
  EXPECT_EQ(Normlab({"submit", "--gpu-memory", "much"}), 2);
  EXPECT_THAT(err_, HasSubstr("write 8GiB, 500MiB"));
  EXPECT_EQ(Normlab({"submit", "--gpus", "0"}), 2);
  EXPECT_EQ(Normlab({"submit", "--after", "nothing"}), 4);
  EXPECT_THAT(err_, HasSubstr("nothing"));
  EXPECT_THAT(server_.created, IsEmpty());
}

TEST_F(QueueCommandsTest, AnExperimentGetsTheSameForAllItsRuns) {
  server_.create_status = grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "enough seen");
  EXPECT_EQ(Normlab({"article", "--priority", "low", "--hold", "--after", "pre", "--out",
                     server_.data_dir() / "out"}),
            4);
  ASSERT_THAT(server_.experiments, SizeIs(1));
  EXPECT_EQ(server_.experiments[0].priority(), "low");
  EXPECT_TRUE(server_.experiments[0].held());
  EXPECT_EQ(server_.experiments[0].after(0).run(), kPre);
}

TEST_F(QueueCommandsTest, HoldAndReleaseGoOnAfterAFailure) {
  EXPECT_EQ(Normlab({"hold", "nothing", "pre"}), 4);
  EXPECT_THAT(server_.held, ElementsAre(kPre));
  EXPECT_THAT(out_, HasSubstr("held"));
  EXPECT_EQ(Normlab({"release", "pre", "post:any"}), 0);
  EXPECT_THAT(server_.released, ElementsAre(kPre, kPost));
}

TEST_F(QueueCommandsTest, MoveNeedsOnePlace) {
  EXPECT_EQ(Normlab({"move", "pre", "--first"}), 0);
  EXPECT_TRUE(server_.moved.back().first());
  EXPECT_EQ(Normlab({"move", "pre", "--last"}), 0);
  EXPECT_TRUE(server_.moved.back().last());
  EXPECT_EQ(Normlab({"move", "pre", "--behind", "post:any"}), 0);
  EXPECT_EQ(server_.moved.back().behind(), kPost);
  EXPECT_THAT(out_, HasSubstr("behind post:any"));
  EXPECT_EQ(Normlab({"move", "pre", "--before", kPost}), 0);
  EXPECT_EQ(server_.moved.back().before(), kPost);
  EXPECT_EQ(Normlab({"move", "pre"}), 2);
  EXPECT_EQ(Normlab({"move", "pre", "--first", "--last"}), 2);
  EXPECT_THAT(server_.moved, SizeIs(4));
}

TEST_F(QueueCommandsTest, PriorityAndAfterChangeOneFieldEach) {
  EXPECT_EQ(Normlab({"priority", "low", "pre", "post:any"}), 0);
  ASSERT_THAT(server_.updated, SizeIs(2));
  EXPECT_THAT(server_.updated[0].update_mask().paths(), ElementsAre("priority"));
  EXPECT_EQ(server_.updated[0].run().priority(), "low");
  EXPECT_EQ(Normlab({"after", "pre", std::string(kPost) + ":ok"}), 0);
  EXPECT_THAT(server_.updated.back().update_mask().paths(), ElementsAre("after"));
  EXPECT_EQ(server_.updated.back().run().after(0).run(), kPost);
  EXPECT_EQ(server_.updated.back().run().after(0).condition(), "ok");
  EXPECT_THAT(out_, HasSubstr(std::string("starts after the success of ") + kPost));
  EXPECT_EQ(Normlab({"after", "pre", "--none"}), 0);
  EXPECT_EQ(server_.updated.back().run().after_size(), 0);
  EXPECT_THAT(out_, HasSubstr("waits for no run"));
  EXPECT_EQ(Normlab({"after", "pre"}), 2);
  EXPECT_EQ(Normlab({"after", "pre", kPost, "--none"}), 2);
}

TEST_F(QueueCommandsTest, AnExperimentIsCancelledByNameOrId) {
  EXPECT_EQ(Normlab({"cancel", "--experiment", "warmup"}), 0);
  EXPECT_EQ(Normlab({"cancel", "--experiment", "01jexp"}), 0);
  EXPECT_THAT(server_.cancelled_experiments, ElementsAre("01JOTHER", "01JEXPERIMENT"));
  EXPECT_THAT(out_, HasSubstr("pre: ○ queued"));
  EXPECT_EQ(Normlab({"cancel", "--experiment", "01J"}), 4);
  EXPECT_THAT(err_, HasSubstr("more than one experiment"));
  EXPECT_EQ(Normlab({"cancel", "--experiment", "none"}), 4);
  EXPECT_EQ(Normlab({"cancel"}), 2);
  EXPECT_EQ(Normlab({"cancel", "pre", "--experiment", "warmup"}), 2);
}

TEST_F(QueueCommandsTest, ShowTellsWhatWasAsked) {
  server_.runs[0].set_held(true);
  server_.runs[0].set_priority("low");
  server_.runs[0].add_after()->set_run(kPost);
  server_.runs[0].mutable_resources()->set_gpu_memory_bytes(int64_t{8} << 30);
  EXPECT_EQ(Normlab({"show", kPre}), 0);
  EXPECT_THAT(out_, HasSubstr(std::string("normlab release ") + kPre));
  EXPECT_THAT(out_, HasSubstr("low"));
  EXPECT_THAT(out_, HasSubstr(std::string("the success of ") + kPost));
  EXPECT_THAT(out_, HasSubstr("8.0 GiB of memory on each"));
}

TEST(BytesFromTextTest, UnitsArePowersOf1024) {
  EXPECT_EQ(BytesFromText("8GiB"), int64_t{8} << 30);
  EXPECT_EQ(BytesFromText("8G"), int64_t{8} << 30);
  EXPECT_EQ(BytesFromText("1.5 GB"), int64_t{3} << 29);
  EXPECT_EQ(BytesFromText("500MiB"), int64_t{500} << 20);
  EXPECT_EQ(BytesFromText("1000000"), 1'000'000);
  EXPECT_EQ(BytesFromText("64K"), int64_t{64} << 10);
  for (const char* wrong : {"", "GiB", "8X", "8Gi", "-1G", "0", "nan", "inf", "1e300T", "8 G B"}) {
    EXPECT_FALSE(BytesFromText(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace normlab::client
