#include "server/base/subprocess.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

namespace normlab {
namespace {

// Starts /bin/sh with a pipe as its standard output.
class Shell {
 public:
  explicit Shell(const std::string& script, SpawnOptions options = {}) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    out_ = UniqueFd(ends[0]);
    const UniqueFd write_end(ends[1]);
    options.argv = {"/bin/sh", "-c", script};
    options.stdout_fd = write_end.get();
    absl::StatusOr<pid_t> pid = Spawn(options);
    EXPECT_TRUE(pid.ok()) << pid.status();
    pid_ = pid.value_or(0);
  }
  ~Shell() { EXPECT_TRUE(reaped_); }

  pid_t pid() const { return pid_; }
  ProcessIdentity identity() const { return ReadIdentity(pid_).value_or(ProcessIdentity{}); }
  std::string ReadLine() {
    std::string line;
    for (char c; read(out_.get(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  int Wait() {
    int status = -1;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    reaped_ = true;
    return status;
  }

 private:
  UniqueFd out_;
  pid_t pid_ = 0;
  bool reaped_ = false;
};

void WaitForEnd(const UniqueFd& process) {
  pollfd entry = {.fd = process.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&entry, 1, 60000), 1);
}

TEST(SpawnTest, PassesArgumentsEnvironmentAndFolder) {
  Shell shell("echo $WORD $PWD", {.environment = {"WORD=yes"}, .directory = "/usr"});
  EXPECT_EQ(shell.ReadLine(), "yes /usr");
  EXPECT_EQ(shell.Wait(), 0);
}

TEST(SpawnTest, ChildInheritsNoDescriptor) {
  const UniqueFd leaky(open("/dev/null", O_RDONLY));  // without O_CLOEXEC
  Shell shell("ls /proc/self/fd | tr '\\n' ' '");
  EXPECT_EQ(shell.ReadLine(), "0 1 2 3 ");  // 3: ls itself reads the folder
  shell.Wait();
}

TEST(SpawnTest, ChildStartsWithDefaultSignalsUnlessBlocked) {
  signal(SIGPIPE, SIG_IGN);
  sigset_t usr1;
  sigset_t old;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &usr1, &old);
  Shell plain("grep -E 'Sig(Blk|Ign)' /proc/self/status | grep -o '.......$' | tr '\\n' ' '");
  EXPECT_EQ(plain.ReadLine(), "0000000 0000000 ");
  plain.Wait();
  Shell blocked("kill -TERM $$; echo alive", {.block_signals = true});
  EXPECT_EQ(blocked.ReadLine(), "alive");
  blocked.Wait();
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

TEST(SpawnTest, MissingProgramIsNotFound) {
  EXPECT_EQ(Spawn({.argv = {"/no/such/program"}}).status().code(), absl::StatusCode::kNotFound);
}

TEST(ProcessTest, IdentityOpensTheProcessUntilItIsGone) {
  Shell shell("read line");
  const ProcessIdentity identity = shell.identity();
  EXPECT_EQ(identity.pid, shell.pid());
  EXPECT_GT(identity.start_ticks, 0U);
  EXPECT_EQ(identity.boot_id.size(), 36U);
  absl::StatusOr<UniqueFd> process = OpenProcess(identity);
  ASSERT_TRUE(process.ok()) << process.status();
  WaitForEnd(*process);  // stdin is /dev/null
  EXPECT_TRUE(HasEnded(*process));
  shell.Wait();
  EXPECT_EQ(OpenProcess(identity).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(SignalProcess(*process, SIGTERM).code(), absl::StatusCode::kNotFound);
}

TEST(ProcessTest, SameNumberWithAnotherStartOrBootIsAnotherProcess) {
  Shell shell("kill -STOP $$");
  ProcessIdentity identity = shell.identity();
  ++identity.start_ticks;
  EXPECT_EQ(OpenProcess(identity).status().code(), absl::StatusCode::kNotFound);
  identity = shell.identity();
  identity.boot_id[0] = '?';
  EXPECT_EQ(OpenProcess(identity).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(OpenProcess({}).ok());
  absl::StatusOr<UniqueFd> process = OpenProcess(shell.identity());
  ASSERT_TRUE(process.ok());
  EXPECT_FALSE(HasEnded(*process));
  EXPECT_TRUE(SignalProcess(*process, SIGKILL).ok());
  EXPECT_EQ(WTERMSIG(shell.Wait()), SIGKILL);
}

TEST(ProcessTest, NameWithSpacesAndParenthesesDoesNotConfuseIdentity) {
  const std::filesystem::path odd = std::filesystem::path(testing::TempDir()) / "a ) (b 1 2";
  std::filesystem::copy_file("/bin/sleep", odd, std::filesystem::copy_options::overwrite_existing);
  absl::StatusOr<pid_t> pid = Spawn({.argv = {odd.string(), "1000"}});
  ASSERT_TRUE(pid.ok());
  const absl::StatusOr<ProcessIdentity> odd_one = ReadIdentity(*pid);
  const absl::StatusOr<ProcessIdentity> self = ReadIdentity(getpid());
  ASSERT_TRUE(odd_one.ok() && self.ok());
  EXPECT_GE(odd_one->start_ticks, self->start_ticks);
  EXPECT_LT(odd_one->start_ticks, self->start_ticks + 100 * 600);
  kill(*pid, SIGKILL);
  waitpid(*pid, nullptr, 0);
  std::filesystem::remove(odd);
}

TEST(ProcessTest, FoundByAnEntryOfItsEnvironment) {
  const std::string marker = "NORMLAB_TEST_MARKER=" + std::to_string(getpid());
  Shell shell("echo up; kill -STOP $$", {.environment = {"A=b", marker}});
  EXPECT_EQ(shell.ReadLine(), "up");
  EXPECT_THAT(FindByEnvironment(marker), testing::ElementsAre(shell.identity()));
  EXPECT_THAT(FindByEnvironment(marker + "0"), testing::IsEmpty());
  kill(shell.pid(), SIGKILL);
  shell.Wait();
  EXPECT_THAT(FindByEnvironment(marker), testing::IsEmpty());
}

// Between the opening of its file in /proc and the reading a process may end and be waited for:
// then it is gone, and nobody is told of a failed read.
TEST(IdentityTest, AProcessMayVanishWhileItIsLookedAt) {
  std::atomic<pid_t> present = 0;
  std::atomic<bool> over = false;
  std::thread reader([&] {
    while (!over) {
      if (const pid_t pid = present; pid != 0) {
        ReadIdentity(pid).status().IgnoreError();
        EnvironmentOf(pid, "WORD");
      }
    }
  });
  for (int i = 0; i < 500; ++i) {
    const absl::StatusOr<pid_t> pid = Spawn({.argv = {"/bin/true"}});
    ASSERT_TRUE(pid.ok()) << pid.status();
    present = *pid;
    EXPECT_EQ(waitpid(*pid, nullptr, 0), *pid);
    EXPECT_FALSE(ReadIdentity(*pid).ok());
  }
  over = true;
  reader.join();
}

}  // namespace
}  // namespace normlab
