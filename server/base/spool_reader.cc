#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "server/base/spool.h"
#include "server/base/spool_format.h"

namespace normlab {
namespace {

using spool_format::kControlBytes;
using spool_format::RecordBytes;
using spool_format::RecordHeader;

// Up to `size` bytes from `offset`; fewer when the file ends before or cannot be read.
std::string ReadAt(int fd, uint64_t offset, uint64_t size) {
  std::string bytes(size, '\0');
  uint64_t done = 0;
  while (done < size) {
    const ssize_t got =
        pread(fd, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<uint64_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace

absl::StatusOr<SpoolReader> SpoolReader::Open(const std::filesystem::path& path) {
  const auto bad = [&path](const std::string& what) {
    return absl::DataLossError(absl::StrCat("spool ", path.string(), ": ", what));
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open the spool ", path.string()));
  }
  absl::Cleanup closer = [fd] { close(fd); };
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return bad("it is not a file");
  const std::string control = ReadAt(fd, 0, spool_format::kTailOffset + 8);
  if (control.size() != spool_format::kTailOffset + 8) return bad("it is too short");
  spool_format::Fixed fixed;
  uint64_t head;
  uint64_t tail;
  std::memcpy(&fixed, control.data(), sizeof(fixed));
  std::memcpy(&head, control.data() + spool_format::kHeadOffset, 8);
  std::memcpy(&tail, control.data() + spool_format::kTailOffset, 8);
  const std::string fault =
      spool_format::Fault(fixed, static_cast<uint64_t>(info.st_size), head, tail);
  if (!fault.empty()) return bad(fault);

  const uint64_t start = tail % fixed.capacity;
  const uint64_t before_end = std::min(head - tail, fixed.capacity - start);
  auto copy = std::make_shared<std::string>(ReadAt(fd, kControlBytes + start, before_end));
  if (copy->size() == before_end) {
    *copy += ReadAt(fd, kControlBytes, head - tail - before_end);
  }
  if (copy->size() != head - tail) return bad("the disk does not give all its bytes");
  SpoolReader reader(*copy, tail, absl::StrCat("spool ", path.string(), ": "));
  reader.copy_ = std::move(copy);
  if (absl::Status status = reader.ReadFirst(); !status.ok()) return status;
  return reader;
}

SpoolReader::SpoolReader(std::string_view window, uint64_t position, std::string name)
    : window_(window), position_(position), name_(std::move(name)) {}

// The last acknowledged record: it only tells the sequence.
absl::Status SpoolReader::ReadFirst() {
  RecordHeader header;
  std::memcpy(&header, window_.data(), sizeof(header));
  sequence_ = header.sequence - 1;
  ReadRecord();
  // Not even that one can be "torn and left out": there would be no sequence to go on from.
  if (torn_) Fail("checksum does not match");
  return status_;
}

bool SpoolReader::Next() {
  if (!status_.ok() || torn_ || window_.empty()) return false;
  return ReadRecord();
}

bool SpoolReader::ReadRecord() {
  RecordHeader header;
  if (window_.size() < sizeof(header)) return Fail("its beginning does not fit");
  std::memcpy(&header, window_.data(), sizeof(header));
  if (header.sequence != sequence_ + 1) {
    return Fail(absl::StrCat("its number is ", header.sequence));
  }
  const uint64_t size = RecordBytes(header.length);
  if (size > window_.size()) {
    return Fail(absl::StrCat("its length ", header.length, " goes past the end"));
  }
  const std::string_view payload = window_.substr(sizeof(header), header.length);
  if (header.checksum != spool_format::RecordChecksum(header.sequence, payload)) {
    torn_ = size == window_.size();
    return torn_ ? false : Fail("its checksum does not match");
  }
  sequence_ = header.sequence;
  bytes_ = payload;
  position_ += size;
  window_.remove_prefix(size);
  return true;
}

bool SpoolReader::Fail(const std::string& what) {
  status_ = absl::DataLossError(
      absl::StrCat(name_, "record ", sequence_ + 1, " at position ", position_, ": ", what));
  return false;
}

}  // namespace normlab
