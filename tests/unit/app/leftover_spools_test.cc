// Spools that a server left behind because it died after it had stored the end of their attempts.
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "server/base/spool.h"
#include "tests/unit/app/dispatcher_fixture.h"

namespace normlab::app {
namespace {

class LeftoverSpoolsTest : public DispatcherTest {
 protected:
  // The folder of an attempt with a spool in it.
  std::filesystem::path MakeSpool(const storage::AttemptRow& attempt) {
    const std::filesystem::path folder = runs_.directory() / attempt.directory;
    std::filesystem::create_directories(folder);
    EXPECT_TRUE(Spool::Create(folder / "spool", Spool::kCapacityUnit).ok());
    return folder;
  }
  storage::AttemptRow EndedAttempt() {
    const storage::AttemptRow attempt = runs_.StartAttempt(runs_.AddRun());
    EXPECT_TRUE(runs_.store()
                    .writer()
                    .Write([&](storage::WriteContext& context) {
                      return storage::EndAttempt(context, attempt.id, {});
                    })
                    .ok());
    runs_.SetState(attempt.run, v1::Run::STATE_SUCCEEDED);
    return attempt;
  }
  // Until the dispatcher's thread has begun to start runs.
  void StartAndLaunchOne() {
    runs_.AddRun();
    Start();
    executor_->WaitForLaunch(1);
  }
};

TEST_F(LeftoverSpoolsTest, OneWhoseAttemptHasEndedGoes) {
  const std::filesystem::path folder = MakeSpool(EndedAttempt());
  StartAndLaunchOne();
  EXPECT_FALSE(std::filesystem::exists(folder / "spool"));
}

TEST_F(LeftoverSpoolsTest, OneThatCannotBeReadIsKeptUnderAnotherName) {
  const std::filesystem::path folder = MakeSpool(EndedAttempt());
  std::ofstream(folder / "spool") << "no ring";
  StartAndLaunchOne();
  EXPECT_FALSE(std::filesystem::exists(folder / "spool"));
  EXPECT_TRUE(std::filesystem::exists(folder / "spool.unreadable"));
}

TEST_F(LeftoverSpoolsTest, OneOfAnAttemptThatNobodyKnowsIsLeftAlone) {
  const std::filesystem::path folder = runs_.directory() / "attempts/stranger-1";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "spool") << "whatever";
  StartAndLaunchOne();
  EXPECT_TRUE(std::filesystem::exists(folder / "spool"));
}

}  // namespace
}  // namespace normlab::app
