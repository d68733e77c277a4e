#include "server/storage/log_care.h"

#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::storage {
namespace {

using fakes::SeriesRecord;
using fakes::StepRecord;
using fakes::StoredRuns;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A process of its own that reads a database when told. Made before anything else, so that it has
// nothing of ours.
class ForeignReader {
 public:
  ForeignReader() {
    if (pipe(to_child_) != 0 || pipe(to_parent_) != 0) throw std::runtime_error("pipe");
    pid_ = fork();
    if (pid_ == 0) {
      close(to_child_[1]);
      Serve();
    }
    close(to_child_[0]);
  }
  ~ForeignReader() {
    close(to_child_[1]);  // which ends it
    int status = 0;
    waitpid(pid_, &status, 0);
  }
  pid_t pid() const { return pid_; }
  // Returns once it is inside a read transaction.
  void Begin(const std::filesystem::path& database) {
    std::string path = database.string();
    path.resize(kPathBytes);
    ASSERT_EQ(write(to_child_[1], path.data(), path.size()), static_cast<ssize_t>(path.size()));
    char answer = 0;
    ASSERT_EQ(read(to_parent_[0], &answer, 1), 1);
    ASSERT_EQ(answer, '+');
  }

 private:
  static constexpr size_t kPathBytes = 512;

  [[noreturn]] void Serve() {
    std::string path(kPathBytes, '\0');
    if (read(to_child_[0], path.data(), path.size()) == static_cast<ssize_t>(path.size())) {
      auto database = Database::Open(path.c_str(), Database::Access::kReadOnly);
      const bool good = database.ok() && (*database)->Execute("BEGIN").ok() &&
                        (*database)->Execute("SELECT count(*) FROM runs").ok();
      if (write(to_parent_[1], good ? "+" : "-", 1) == 1) {
        char nothing;
        while (read(to_child_[0], &nothing, 1) > 0) {
        }
      }
    }
    _exit(0);
  }

  int to_child_[2];
  int to_parent_[2];
  pid_t pid_;
};

constexpr LogLimits kSmall = {
    .checkpoint = 32 << 10, .truncate = 64 << 10, .name = 256 << 10, .hold = 1 << 20};
constexpr std::chrono::milliseconds kTick(5);

// Writes steps until the log is as the test wants it.
class Steps {
 public:
  explicit Steps(StoredRuns& runs) : runs_(runs), attempt_(runs.StartAttempt(runs.AddRun())) {
    EXPECT_TRUE(runs_.Append(attempt_.id, sequence_++, {SeriesRecord({"loss"})}).ok());
  }
  template <typename Condition>
  void Until(Condition condition) {
    for (int i = 0; i < 10'000; ++i) {
      ASSERT_TRUE(runs_.Append(attempt_.id, sequence_, Some()).ok());
      sequence_ += kSome;
      // A second write comes after the look at the log that follows the first.
      ASSERT_TRUE(
          runs_.store().writer().Write([](WriteContext&) { return absl::OkStatus(); }).ok());
      if (condition(runs_.store().log_state())) return;
    }
    FAIL() << "the log never got there";
  }
  // Hands steps in as trainers' sessions do.
  std::future<absl::Status> Submit() {
    auto told = std::make_shared<std::promise<absl::Status>>();
    runs_.store().writer().Submit(
        [this, first = sequence_, records = Some()](WriteContext& context) {
          return runs_.store().attempt_log().Append(context, attempt_.id, first, records);
        },
        [told](const absl::Status& status) { told->set_value(status); },
        {.rows = kSome, .bulk = true});
    sequence_ += kSome;
    return told->get_future();
  }

 private:
  static constexpr int kSome = 50;
  std::vector<std::string> Some() {
    std::vector<std::string> records;
    for (int i = 0; i < kSome; ++i) records.push_back(StepRecord(++step_, {1.5}));
    return records;
  }

  StoredRuns& runs_;
  const AttemptRow attempt_;
  uint64_t sequence_ = 1;
  int64_t step_ = 0;
};

template <typename Condition>
::testing::AssertionResult Eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return ::testing::AssertionFailure();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return ::testing::AssertionSuccess();
}

int64_t LogFileBytes(StoredRuns& runs) {
  return static_cast<int64_t>(std::filesystem::file_size(runs.directory() / "normlab.db-wal"));
}

TEST(LogCareTest, TheLogStaysShortWhileNobodyIsInTheWay) {
  StoredRuns runs(kSmall, kTick);
  Steps steps(runs);
  int64_t largest = 0;
  int left = 300;
  steps.Until([&](const LogState& state) {
    largest = std::max(largest, state.bytes);
    EXPECT_FALSE(state.pinned);
    return --left == 0;
  });
  EXPECT_LT(largest, 2 * kSmall.truncate);
  EXPECT_LT(LogFileBytes(runs), kSmall.name);
}

TEST(LogCareTest, AForeignReaderIsNamedAndPointsWaitUntilItHasEnded) {
  auto reader = std::make_unique<ForeignReader>();
  StoredRuns runs(kSmall, kTick);
  Steps steps(runs);
  reader->Begin(runs.directory() / "normlab.db");
  steps.Until([](const LogState& state) { return state.pinned; });
  const LogState named = runs.store().log_state();
  ASSERT_EQ(named.readers.size(), 1u);
  EXPECT_EQ(named.readers[0].who.pid, reader->pid());
  EXPECT_EQ(named.readers[0].who.command, "storage_test");
  EXPECT_FALSE(named.holding) << "there is room yet";

  steps.Until([](const LogState& state) { return state.holding; });
  runs.clock().Advance(std::chrono::seconds(90));
  EXPECT_TRUE(Eventually([&] { return runs.store().log_state().readers.at(0).seconds >= 90; }));
  std::future<absl::Status> points = steps.Submit();
  const std::string queued = runs.AddRun();  // commits all the same
  runs.SetState(queued, v1::Run::STATE_CANCELLED);
  EXPECT_EQ(runs.Read(queued).state(), v1::Run::STATE_CANCELLED);
  EXPECT_EQ(points.wait_for(std::chrono::milliseconds(0)), std::future_status::timeout);

  reader.reset();
  ASSERT_EQ(points.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_TRUE(points.get().ok());
  EXPECT_TRUE(Eventually([&] { return !runs.store().log_state().pinned; }));
  EXPECT_FALSE(runs.store().log_state().holding);
  EXPECT_THAT(runs.store().log_state().readers, IsEmpty());
  EXPECT_LT(LogFileBytes(runs), kSmall.name) << "its file was cut";
}

TEST(LogCareTest, AReadOfOursThatTakesLongIsCountedWithItsPlace) {
  StoredRuns runs;
  const auto slow = [&](Database&) {
    EXPECT_THAT(runs.store().SlowReaders(), IsEmpty());
    runs.clock().Advance(std::chrono::milliseconds(1100));
    EXPECT_THAT(runs.store().SlowReaders(), ElementsAre(HasSubstr("log_care_test.cc:")));
    return absl::OkStatus();
  };
  ASSERT_TRUE(runs.store().Read(slow).ok());
  EXPECT_EQ(runs.store().slow_reads(), 1u);
  EXPECT_THAT(runs.store().SlowReaders(), IsEmpty());
  ASSERT_TRUE(runs.store().Read([](Database&) { return absl::OkStatus(); }).ok());
  EXPECT_EQ(runs.store().slow_reads(), 1u);
}

constexpr char kLocks[] =
    "1: POSIX  ADVISORY  READ 100 fe:00:77 128 128\n"
    "2: POSIX  ADVISORY  READ 100 fe:00:77 124 124\n"
    "3: POSIX  ADVISORY  READ 200 fe:00:77 128 128\n"
    "4: POSIX  ADVISORY  READ 300 fe:00:77 123 123\n"
    "5: POSIX  ADVISORY  WRITE 400 fe:00:77 120 122\n"
    "6: FLOCK  ADVISORY  WRITE 500 fe:00:77 0 EOF\n"
    "7: POSIX  ADVISORY  READ 600 fd:01:77 125 125\n"
    "8: POSIX  ADVISORY  READ 700 fe:00:78 125 125\n"
    "9: -> POSIX  ADVISORY  READ 800 fe:00:77 125 125\n"
    "10: POSIX  ADVISORY  READ 250 fe:00:77 0 EOF\n"
    "11: POSIX  ADVISORY  READ 300 fe:00:77 127 127\n"
    "something else\n";

TEST(LogReadersTest, OnlyReadMarksOfTheFileByOthersCount) {
  EXPECT_THAT(PidsWithReadMarks(kLocks, 77, 100), ElementsAre(250, 300));
}

TEST(LogReadersTest, WithoutAConnectionOfOursTheInodeAloneDecides) {
  EXPECT_THAT(PidsWithReadMarks(kLocks, 77, 1), ElementsAre(100, 250, 300, 600));
}

}  // namespace
}  // namespace normlab::storage
