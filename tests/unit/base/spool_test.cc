#include "server/base/spool.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "server/base/crc32c.h"
#include "server/base/spool_format.h"
#include "tests/fakes/temp_dir.h"

namespace normlab {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kSmall = Spool::kCapacityUnit;

class SpoolTest : public testing::Test {
 protected:
  std::unique_ptr<Spool> MakeSpool(uint64_t capacity = kSmall) {
    EXPECT_TRUE(Spool::Create(path_, capacity).ok());
    return Reopen();
  }
  std::unique_ptr<Spool> Reopen() {
    absl::StatusOr<std::unique_ptr<Spool>> spool = Spool::Open(path_);
    EXPECT_TRUE(spool.ok()) << spool.status();
    return spool.ok() ? *std::move(spool) : nullptr;
  }
  // Overwrites bytes of the file, as a disk might.
  void Poke(uint64_t offset, std::string_view bytes) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file << bytes;
    ASSERT_TRUE(file.flush().good());
  }

  const fakes::TempDir temporary_;
  const std::filesystem::path directory_ = temporary_.path();
  const std::filesystem::path path_ = directory_ / "spool";
};

std::string Payload(uint64_t sequence) {
  return std::string(sequence * 7 % 300, static_cast<char>('a' + sequence % 26)) +
         std::to_string(sequence);
}

std::vector<std::string> ReadAll(const Spool& spool) {
  std::vector<std::string> records;
  Spool::Cursor cursor = spool.AckedCursor();
  spool.Read(&cursor, {}, [&](uint64_t, std::string_view bytes) { records.emplace_back(bytes); });
  return records;
}

std::vector<std::string> ReadOut(const std::filesystem::path& path,
                                 absl::Status* status = nullptr) {
  absl::StatusOr<SpoolReader> reader = SpoolReader::Open(path);
  std::vector<std::string> records;
  if (reader.ok()) {
    while (reader->Next()) records.emplace_back(reader->bytes());
  }
  if (status != nullptr) *status = reader.ok() ? reader->status() : reader.status();
  return records;
}

TEST(Crc32cTest, MatchesTheVectorsOfRfc3720) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(Crc32c("6789", Crc32c("12345")), 0xe3069283U);
}

TEST_F(SpoolTest, RecordsCountFromOneAndComeBackInOrder) {
  auto spool = MakeSpool();
  EXPECT_EQ(*spool->Append("first"), 1U);
  EXPECT_EQ(*spool->Append(""), 2U);
  EXPECT_EQ(*spool->Append("third"), 3U);
  EXPECT_THAT(ReadAll(*spool), ElementsAre("first", "", "third"));
  EXPECT_THAT(ReadOut(path_), ElementsAre("first", "", "third"));
}

TEST_F(SpoolTest, AcknowledgedRecordsAreGoneAlsoAfterReopening) {
  auto spool = MakeSpool();
  for (const char* text : {"a", "b", "c"}) ASSERT_TRUE(spool->Append(text).ok());
  ASSERT_TRUE(spool->Ack(2).ok());
  ASSERT_TRUE(spool->Ack(1).ok());  // late: nothing happens
  spool.reset();
  EXPECT_THAT(ReadOut(path_), ElementsAre("c"));
  spool = Reopen();
  EXPECT_EQ(spool->acked_sequence(), 2U);
  EXPECT_EQ(spool->last_sequence(), 3U);
  EXPECT_EQ(*spool->Append("d"), 4U);
  ASSERT_TRUE(spool->Ack(4).ok());
  spool.reset();
  spool = Reopen();
  EXPECT_EQ(spool->acked_sequence(), 4U);
  EXPECT_EQ(*spool->Append("e"), 5U);
}

TEST_F(SpoolTest, SequenceThatWasNeverAppendedIsNotAcknowledged) {
  auto spool = MakeSpool();
  EXPECT_EQ(spool->Ack(1).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SpoolTest, FileTakesItsDiskSpaceAtOnceAndIsPrivate) {
  ASSERT_TRUE(Spool::Create(path_, Spool::kDefaultCapacity).ok());
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_GE(static_cast<uint64_t>(info.st_blocks) * 512, Spool::kDefaultCapacity);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(SpoolTest, NoRoomIsResourceExhaustedAndLeavesNoFile) {
  struct rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  const struct rlimit tiny = {1 << 20, old.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &tiny);
  EXPECT_EQ(Spool::Create(path_, Spool::kDefaultCapacity).code(),
            absl::StatusCode::kResourceExhausted);
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(SpoolTest, SecondWriterIsRefused) {
  auto spool = MakeSpool();
  EXPECT_EQ(Spool::Open(path_).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SpoolTest, RecordsRunOverTheEndOfTheRing) {
  auto spool = MakeSpool();
  uint64_t read = 0;
  Spool::Cursor cursor = spool->AckedCursor();
  for (uint64_t i = 1; i <= 5000; ++i) {
    ASSERT_EQ(*spool->TryAppend(Payload(i)), i);
    if (i % 100 != 0) continue;
    while (spool->Read(&cursor, {.records = 7, .bytes = 900}, [&](uint64_t sequence, auto bytes) {
      ASSERT_EQ(sequence, ++read);
      ASSERT_EQ(bytes, Payload(sequence));
    }) > 0) {
    }
    ASSERT_TRUE(spool->Ack(i - 3).ok());
    ASSERT_EQ(ReadOut(path_).size(), 3U);
  }
  EXPECT_EQ(read, 5000U);
}

TEST_F(SpoolTest, LargestRecordFitsAndALargerOneIsRefused) {
  auto spool = MakeSpool();
  const std::string largest(spool->max_record_bytes(), 'x');
  for (uint64_t i = 1; i <= 9; ++i) {
    ASSERT_EQ(*spool->TryAppend(largest), i);
    ASSERT_TRUE(spool->Ack(i).ok());
  }
  EXPECT_EQ(spool->Append(largest + "y").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SpoolTest, FullRingBlocksUntilRecordsAreAcknowledged) {
  auto spool = MakeSpool();
  uint64_t last = 0;
  while (spool->TryAppend(std::string(1000, 'x')).ok()) ++last;
  EXPECT_GT(last, 50U);
  std::thread producer([&] { EXPECT_EQ(*spool->Append(std::string(1000, 'y')), last + 1); });
  EXPECT_EQ(spool->last_sequence(), last);
  ASSERT_TRUE(spool->Ack(2).ok());
  producer.join();
  EXPECT_EQ(ReadAll(*spool).size(), last - 1);
}

TEST_F(SpoolTest, InterruptEndsTheWaitAndTheLastRecordStillFits) {
  auto spool = MakeSpool();
  uint64_t last = 0;
  while (spool->TryAppend(std::string(1000, 'x')).ok()) ++last;
  std::thread producer([&] {
    EXPECT_EQ(spool->Append(std::string(1000, 'x')).status().code(), absl::StatusCode::kCancelled);
  });
  spool->Interrupt();
  producer.join();
  EXPECT_EQ(*spool->AppendLast("finished"), last + 1);
}

TEST_F(SpoolTest, WaitersSeeRecordsWakesAndAcks) {
  auto spool = MakeSpool();
  Spool::Cursor cursor = spool->AckedCursor();
  EXPECT_FALSE(spool->WaitForRecord(cursor, std::chrono::nanoseconds(1)));
  std::thread other([&] { ASSERT_TRUE(spool->Append("a").ok()); });
  EXPECT_TRUE(spool->WaitForRecord(cursor, seconds(60)));
  other.join();
  EXPECT_EQ(spool->Read(&cursor, {}, [](uint64_t, std::string_view) {}), 1U);
  other = std::thread([&] { spool->Wake(); });
  EXPECT_FALSE(spool->WaitForRecord(cursor, seconds(60)));
  other.join();
  EXPECT_FALSE(spool->WaitUntilAcked(1, std::chrono::nanoseconds(1)));
  other = std::thread([&] { ASSERT_TRUE(spool->Ack(1).ok()); });
  EXPECT_TRUE(spool->WaitUntilAcked(1, seconds(60)));
  other.join();
}

TEST_F(SpoolTest, ProducerReaderAndAcknowledgerRunAtOnce) {
  auto spool = MakeSpool();
  constexpr uint64_t kRecords = 100000;
  std::atomic<uint64_t> sent = 0;
  std::thread producer([&] {
    for (uint64_t i = 1; i <= kRecords; ++i) ASSERT_EQ(*spool->Append(Payload(i)), i);
  });
  std::thread acknowledger([&] {
    for (uint64_t acked = 0; acked < kRecords;) {
      sent.wait(acked);
      acked = sent;
      ASSERT_TRUE(spool->Ack(acked).ok());
    }
  });
  Spool::Cursor cursor;
  while (cursor.sequence < kRecords) {
    spool->WaitForRecord(cursor, seconds(60));
    spool->Read(&cursor, {.records = 64}, [&](uint64_t sequence, std::string_view bytes) {
      ASSERT_EQ(bytes, Payload(sequence));
    });
    sent = cursor.sequence;
    sent.notify_one();
  }
  producer.join();
  acknowledger.join();
  EXPECT_EQ(spool->acked_sequence(), kRecords);
}

// The child appends, and only then says so through a pipe, until it is killed in the middle.
TEST_F(SpoolTest, KilledWriterLosesNothingThatItSaidItHadAppended) {
  for (int round = 0; round < 10; ++round) {
    std::filesystem::remove(path_);
    ASSERT_TRUE(Spool::Create(path_, Spool::kDefaultCapacity).ok());
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      auto spool = Spool::Open(path_);
      for (uint64_t i = 1; (*spool)->TryAppend(Payload(i)).ok(); ++i) {
        if (write(ends[1], &i, sizeof(i)) != sizeof(i)) break;
      }
      _exit(0);
    }
    close(ends[1]);
    uint64_t said = 0;
    uint64_t next;
    while (read(ends[0], &next, sizeof(next)) == sizeof(next)) {
      said = next;
      if (said == 200U + 97U * round) kill(child, SIGKILL);
    }
    close(ends[0]);
    int wait_status;
    waitpid(child, &wait_status, 0);
    ASSERT_TRUE(WIFSIGNALED(wait_status));

    absl::Status status;
    const std::vector<std::string> records = ReadOut(path_, &status);
    EXPECT_TRUE(status.ok()) << status;
    ASSERT_GE(records.size(), said);
    ASSERT_LE(records.size(), said + 1);
    for (uint64_t i = 0; i < records.size(); ++i) ASSERT_EQ(records[i], Payload(i + 1));
  }
}

TEST_F(SpoolTest, TornLastRecordIsLeftOut) {
  auto spool = MakeSpool();
  ASSERT_TRUE(spool->Append("whole").ok());
  ASSERT_TRUE(spool->Append("half on disk").ok());
  spool.reset();
  // Behind the control block: 16 bytes of record 0, 24 of record 1, the header of record 2.
  Poke(spool_format::kControlBytes + 16 + 24 + 16 + 4, std::string(8, '\0'));
  absl::StatusOr<SpoolReader> reader = SpoolReader::Open(path_);
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(reader->Next());
  EXPECT_FALSE(reader->Next());
  EXPECT_FALSE(reader->Next());
  EXPECT_TRUE(reader->torn());
  EXPECT_TRUE(reader->status().ok());
  EXPECT_EQ(reader->sequence(), 1U);
  spool = Reopen();
  EXPECT_EQ(*spool->Append("again"), 2U);
  EXPECT_THAT(ReadOut(path_), ElementsAre("whole", "again"));
}

TEST_F(SpoolTest, DamagedRecordIsNamedAndThoseBeforeItAreRead) {
  auto spool = MakeSpool();
  for (uint64_t i = 1; i <= 10; ++i) ASSERT_TRUE(spool->Append("12345678").ok());
  spool.reset();
  Poke(spool_format::kControlBytes + 16 + 4 * 24 + 16, "X");
  absl::Status status;
  EXPECT_EQ(ReadOut(path_, &status).size(), 4U);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("record 5 at position 112: its checksum"));
  EXPECT_EQ(Spool::Open(path_).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(SpoolTest, FilesThatAreNoSpoolAreRefusedWithWhatIsWrong) {
  EXPECT_EQ(SpoolReader::Open(path_).status().code(), absl::StatusCode::kNotFound);
  const auto fault = [&] { return std::string(SpoolReader::Open(path_).status().message()); };
  std::ofstream(path_) << "text";
  EXPECT_THAT(fault(), HasSubstr("too short"));
  std::filesystem::remove(path_);
  MakeSpool();
  std::filesystem::resize_file(path_, kSmall);
  EXPECT_THAT(fault(), HasSubstr("it has 65536 bytes, not 131072"));
  std::filesystem::resize_file(path_, 2 * kSmall);
  Poke(0, "?");
  EXPECT_THAT(fault(), HasSubstr("does not begin like a spool"));
  Poke(0, "N");
  Poke(16, "?");
  EXPECT_THAT(fault(), HasSubstr("checksum of its first bytes"));
  Poke(16, std::string(1, '\0'));
  // Head 24 and tail 16: no record, which has 16 bytes at least, lies between them.
  Poke(64, std::string("\x18\0", 2));
  Poke(128, std::string("\x10\0", 2));
  EXPECT_THAT(fault(), HasSubstr("head 24 and tail 16 make no sense"));
  EXPECT_EQ(Spool::Open(path_).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(SpoolTest, NoSingleWrongByteCrashesAReader) {
  {
    auto spool = MakeSpool();
    for (uint64_t i = 1; i <= 20; ++i) ASSERT_TRUE(spool->Append(Payload(i)).ok());
    ASSERT_TRUE(spool->Ack(3).ok());
  }
  std::ifstream in(path_, std::ios::binary);
  const std::string sound{std::istreambuf_iterator<char>(in), {}};
  const size_t ring = spool_format::kControlBytes;
  for (size_t at = 0; at < ring + 4096; ++at) {
    if (at == 192) at = ring;  // nobody reads what lies between
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      Poke(at, std::string(1, static_cast<char>(sound[at] ^ flip)));
      const std::vector<std::string> records = ReadOut(path_);
      ASSERT_LE(records.size(), 20U);
    }
    Poke(at, sound.substr(at, 1));
  }
  EXPECT_EQ(ReadOut(path_).size(), 17U);
}

TEST_F(SpoolTest, AppendTakesAboutAsLongAsAMemoryWrite) {
  auto spool = MakeSpool(Spool::kDefaultCapacity);
  const std::string record(100, 'r');
  constexpr uint64_t kRecords = 400000;
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t i = 1; i <= kRecords; ++i) {
    ASSERT_TRUE(spool->Append(record).ok());
    if (i % 1000 != 0) continue;
    ASSERT_TRUE(spool->Ack(i).ok());
  }
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
  std::printf("%.0f ns an append\n", static_cast<double>(took.count()) / kRecords);
  RecordProperty("nanoseconds_per_append", static_cast<int>(took.count() / kRecords));
  EXPECT_LT(took / kRecords, std::chrono::microseconds(20));  // loose: machines are shared
}

}  // namespace
}  // namespace normlab
