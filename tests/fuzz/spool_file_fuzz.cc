// Spool files that a dying machine, or somebody's editor, left behind: a ring with real records is
// damaged as the input says, then read by the server's reader and opened by a trainer again. What
// is read are records that were written, in order; the rest is refused as DATA_LOSS.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/base/spool.h"
#include "server/base/spool_format.h"
#include "tests/fakes/temp_dir.h"
#include "tests/fuzz/property.h"

namespace {

using normlab::Spool;
using normlab::SpoolReader;
using normlab::fuzz::Input;
namespace format = normlab::spool_format;

// Records by sequence; those from `first_kept` on are not acknowledged.
struct Written {
  std::vector<std::string> records = {""};  // sequence 0, which every ring begins with
  uint64_t first_kept = 1;
};

std::string RecordOf(Input& input) {
  const auto kind = input.Value<uint8_t>();
  // Long ones, so that the ring is gone round within a few.
  if (kind >= 0xc0) return std::string((kind - 0xbf) * size_t{400}, static_cast<char>(kind));
  return std::string(input.Take(kind % 32));
}

Written Fill(const std::filesystem::path& path, Input& input) {
  Written written;
  const std::unique_ptr<Spool> spool = Spool::Open(path).value();
  for (int count = input.Value<uint8_t>(); count > 0; --count) {
    std::string record = RecordOf(input);
    if (!spool->TryAppend(record).ok()) {
      written.first_kept = spool->last_sequence() + 1;
      REQUIRE(spool->Ack(spool->last_sequence()).ok());
      REQUIRE(spool->TryAppend(record).ok());
    }
    written.records.push_back(std::move(record));
  }
  return written;
}

void Put(int file, uint64_t offset, const void* bytes, size_t size) {
  REQUIRE(pwrite(file, bytes, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size));
}

// True when anything was changed that a reader looks at.
bool Damage(const std::filesystem::path& path, Input& input) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  bool damaged = false;
  while (!input.empty()) {
    damaged = true;
    switch (const auto kind = input.Value<uint8_t>(); kind % 6) {
      case 0: {  // any byte of the ring
        const uint64_t offset = format::kControlBytes + input.Value<uint16_t>();
        const auto byte = input.Value<uint8_t>();
        Put(file, offset, &byte, 1);
        break;
      }
      case 1: {  // any byte of the control block
        const uint64_t offset = input.Value<uint8_t>();
        const auto byte = input.Value<uint8_t>();
        Put(file, offset, &byte, 1);
        break;
      }
      case 2: {  // another head or tail
        const auto position = input.Value<uint64_t>();
        Put(file, kind & 8 ? format::kHeadOffset : format::kTailOffset, &position, 8);
        break;
      }
      case 3: {  // other sizes, with a checksum that fits
        format::Fixed fixed = format::MakeFixed(input.Value<uint64_t>());
        Put(file, 0, &fixed, sizeof(fixed));
        break;
      }
      case 4:  // cut off, or grown
        REQUIRE(ftruncate(file, input.Value<uint32_t>() % (256 << 10)) == 0);
        break;
      default: {  // a sound record anywhere
        const uint64_t offset = format::kControlBytes + (input.Value<uint16_t>() & ~7);
        const auto sequence = input.Value<uint64_t>();
        const std::string_view payload = input.Text();
        const format::RecordHeader header = {sequence, static_cast<uint32_t>(payload.size()),
                                             format::RecordChecksum(sequence, payload)};
        Put(file, offset, &header, sizeof(header));
        Put(file, offset + sizeof(header), payload.data(), payload.size());
      }
    }
  }
  close(file);
  return damaged;
}

void ReadOut(const std::filesystem::path& path, const Written& written, bool damaged) {
  absl::StatusOr<SpoolReader> reader = SpoolReader::Open(path);
  if (!reader.ok()) {
    REQUIRE(damaged && absl::IsDataLoss(reader.status()));
    return;
  }
  uint64_t last = reader->sequence();
  while (reader->Next()) {
    REQUIRE(reader->sequence() == ++last);
    if (!damaged) REQUIRE(reader->bytes() == written.records.at(last));
  }
  REQUIRE(reader->status().ok() || absl::IsDataLoss(reader->status()));
  if (!damaged) {
    REQUIRE(reader->status().ok() && !reader->torn());
    REQUIRE(last == written.records.size() - 1);
  }
}

// A trainer that goes on with it: what it appends is read back.
void GoOn(const std::filesystem::path& path, bool damaged) {
  const absl::StatusOr<std::unique_ptr<Spool>> opened = Spool::Open(path);
  if (!opened.ok()) {
    REQUIRE(damaged && absl::IsDataLoss(opened.status()));
    return;
  }
  Spool& spool = **opened;
  const absl::StatusOr<uint64_t> sequence = spool.TryAppend("one more");
  if (!sequence.ok()) {
    REQUIRE(absl::IsResourceExhausted(sequence.status()));
    return;
  }
  Spool::Cursor cursor = spool.AckedCursor();
  std::string latest;
  const auto take = [&latest](uint64_t, std::string_view bytes) { latest = bytes; };
  while (spool.Read(&cursor, {}, take) > 0) {
  }
  REQUIRE(cursor.sequence == *sequence && latest == "one more");
  REQUIRE(spool.Ack(*sequence).ok() && spool.acked_sequence() == *sequence);
}

// In memory where that is possible: each input makes a file.
std::filesystem::path Folder() {
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
  static const auto* folder = new normlab::fakes::TempDir;
  std::atexit([] {
    std::error_code ignored;
    std::filesystem::remove_all(folder->path(), ignored);
  });
  return folder->path();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::filesystem::path path = Folder() / "spool";
  Input input(data, size);
  unlink(path.c_str());
  REQUIRE(Spool::Create(path, Spool::kCapacityUnit).ok());
  const Written written = Fill(path, input);
  const bool damaged = Damage(path, input);
  ReadOut(path, written, damaged);
  GoOn(path, damaged);
  ReadOut(path, written, true);
  return 0;
}
