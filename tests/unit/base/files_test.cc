#include "server/base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/ids.h"
#include "tests/fakes/temp_dir.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;

mode_t ModeOf(const std::filesystem::path& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
}

TEST(FilesTest, APrivateFileIsReplacedWholeAndClosed) {
  fakes::TempDir dir;
  const auto path = dir.path() / "secret";
  std::ofstream(path) << "open to all";
  chmod(path.c_str(), 0666);
  ASSERT_TRUE(WritePrivateFile(path, "token").ok());
  EXPECT_EQ(ReadFile(path).value(), "token");
  EXPECT_EQ(ModeOf(path), 0600u);
  EXPECT_TRUE(absl::IsNotFound(ReadFile(dir.path() / "nothing").status()));
}

TEST(FilesTest, AnOpenFolderIsRefusedWithTheRemedy) {
  fakes::TempDir dir;
  ASSERT_TRUE(MakePrivateDirectory(dir.path() / "a/b").ok());
  EXPECT_EQ(ModeOf(dir.path() / "a/b"), 0700u);
  ASSERT_TRUE(MakePrivateDirectory(dir.path() / "a/b").ok()) << "again";
  chmod((dir.path() / "a/b").c_str(), 0755);
  EXPECT_THAT(std::string(MakePrivateDirectory(dir.path() / "a/b").message()),
              HasSubstr("chmod 700"));
  std::ofstream(dir.path() / "file") << "";
  EXPECT_FALSE(MakePrivateDirectory(dir.path() / "file").ok());
  std::filesystem::create_directory_symlink(dir.path() / "a", dir.path() / "link");
  EXPECT_FALSE(MakePrivateDirectory(dir.path() / "link").ok()) << "a link may lead anywhere";
}

TEST(FilesTest, ALockIsHeldOnceAndNamesItsHolder) {
  fakes::TempDir dir;
  {
    const absl::StatusOr<FileLock> lock = FileLock::Take(dir.path() / "lock");
    ASSERT_TRUE(lock.ok());
    EXPECT_THAT(std::string(FileLock::Take(dir.path() / "lock").status().message()),
                HasSubstr("process " + std::to_string(getpid())));
  }
  EXPECT_TRUE(FileLock::Take(dir.path() / "lock").ok()) << "free again";
}

TEST(UlidTest, RiseAlsoWithinAMillisecondAndWhenTheClockGoesBack) {
  UlidGenerator generator;
  std::string last;
  for (const int64_t micros : {1'000'000'000, 1'000'000'000, 1'000'000'900, 999'000'000}) {
    for (int i = 0; i < 1000; ++i) {
      const std::string next = generator.Next(micros);
      EXPECT_TRUE(IsUlid(next)) << next;
      EXPECT_GT(next, last);
      last = next;
    }
  }
  EXPECT_EQ(UlidGenerator().Next(1'469'918'176'385'000).substr(0, 10), "01ARYZ6S41");  // the spec's
}

TEST(UlidTest, KnowsOneFromOtherText) {
  EXPECT_TRUE(IsUlid("01ARZ3NDEKTSV4RRFFQ69G5FAV"));
  EXPECT_FALSE(IsUlid("81ARZ3NDEKTSV4RRFFQ69G5FAV")) << "more than 128 bits";
  EXPECT_FALSE(IsUlid("01ARZ3NDEKTSV4RRFFQ69G5FAU")) << "no U in Crockford's digits";
  EXPECT_FALSE(IsUlid("01ARZ3NDEKTSV4RRFFQ69G5FA"));
  EXPECT_FALSE(IsUlid(""));
}

TEST(SecretsTest, DigestAndComparison) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(EqualSecrets("abc", "abc"));
  EXPECT_FALSE(EqualSecrets("abc", "abd"));
  EXPECT_FALSE(EqualSecrets("abc", "ab"));
  EXPECT_EQ(RandomHex(32).size(), 64u);
  EXPECT_NE(RandomHex(32), RandomHex(32));
}

TEST(FileLockTest, NamesWhoHasIt) {
  fakes::TempDir dir;
  const absl::StatusOr<FileLock> lock = FileLock::Take(dir.path() / "lock");
  ASSERT_TRUE(lock.ok()) << lock.status();
  const absl::StatusOr<FileLock> second = FileLock::Take(dir.path() / "lock");
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("is in use by process " + std::to_string(getpid())));
}

// A process that was killed while it started a child: the child has the lock until it runs its own
// program.
TEST(FileLockTest, WaitsForTheChildOfOneThatIsGone) {
  fakes::TempDir dir;
  const auto path = dir.path() / "lock";
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  ASSERT_EQ(waitpid(gone, nullptr, 0), gone);
  std::ofstream(path) << gone;
  const int childs = open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(childs, LOCK_EX | LOCK_NB), 0);
  std::thread child([childs] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    close(childs);
  });
  const absl::StatusOr<FileLock> lock = FileLock::Take(path);
  child.join();
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_EQ(ReadFile(path).value(), std::to_string(getpid()));
}

TEST(FilesTest, NetworkFileSystemsAreKnownByTheirNumbers) {
  for (const uint32_t network : {0x6969u,         // NFS
                                 0x517Bu,         // SMB
                                 0xFF534D42u,     // CIFS
                                 0xFE534D42u,     // SMB 2 and 3
                                 0x01021997u,     // 9p
                                 0x00C36400u,     // Ceph
                                 0x0BD00BD0u}) {  // Lustre
    EXPECT_TRUE(IsNetworkFileSystem(network)) << std::hex << network;
  }
  for (const uint32_t local : {0xEF53u, 0x58465342u, 0x9123683Eu, 0x01021994u, 0x794C7630u}) {
    EXPECT_FALSE(IsNetworkFileSystem(local)) << std::hex << local;
  }
  EXPECT_FALSE(OnNetworkFileSystem("/proc"));
}

}  // namespace
}  // namespace normlab
